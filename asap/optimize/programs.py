"""Configurations that say more than a plan: programs of the mapping language for a training step."""

from asap.compiler.reference.expressible import mapping_target
from asap.core.errors import PlanError
from asap.mapping.language.parse import parse
from asap.mapping.language.program import Program
from asap.mapping.maxtext import rules_text, write_rules
from asap.mapping.plan_program import plan_of
from asap.models import Architecture
from asap.optimize.ideas import split_idea
from asap.optimize.outcome import Configuration
from asap.plans import Plan
from asap.proposals.launch import overrides_of
from asap.proposals.proposal import Overrides
from asap.study.study import Study


def is_program(configuration: Configuration) -> bool:
    """Whether a configuration is a program; the others are plans."""
    return configuration.startswith("mesh ")


def read(configuration: Configuration) -> tuple[Plan, Program | None]:
    """The plan of a configuration, whatever idea it is tried with, and its program if it is one."""
    configuration = split_idea(configuration)[0]
    if not is_program(configuration):
        return Plan.parse(configuration), None
    program = parse(configuration)[0]
    return plan_of(program), program


def launched(study: Study, program: Program) -> Overrides:
    """What to paste for the run's own launcher to run a program: its plan's line, with MaxText's rules.

    Raises:
        InsufficientEvidenceError: a shape of the model is unknown.
        PlanError: the launcher has no words for it.
    """
    target = mapping_target(study.experiment.model or Architecture(), study.experiment.workload)
    found = overrides_of(study, plan_of(program))
    if found.maxtext is None:
        raise PlanError("only MaxText takes rules for single tensors")
    rules = write_rules(program, target)
    return found.model_copy(update={"maxtext": f'{found.maxtext} "{rules_text(rules)}"' if rules else found.maxtext})
