"""The plan of an experiment as a program of the mapping language, with MaxText's own rules where it has some."""

from asap.compiler.program_facts import program_facts
from asap.core.errors import InsufficientEvidenceError
from asap.experiments import Experiment
from asap.mapping.language.format import format_program
from asap.mapping.maxtext import read_rules
from asap.mapping.plan_program import plan_text
from asap.plans import Plan


def experiment_program(record: Experiment, plan: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The program, and the names of MaxText's rules that the language has no words for.

    Args:
        record: the experiment.
        plan: another plan than the one on record; what it leaves out is as on record.

    Raises:
        InsufficientEvidenceError: no plan is known.
        PlanError: the plan is wrong, or two axes of MaxText that are both above 1 are one axis of a plan.
    """
    chosen = Plan.parse(plan).completed_by(record.plan) if plan else record.plan
    if chosen is None:
        raise InsufficientEvidenceError("no plan is on record", where=record.id, hint='give one: --plan "data=16"')
    target = program_facts(record).target
    if target is None:
        return plan_text(chosen), ()
    program, left_out = read_rules(record.hyperparameters, chosen, target)
    return format_program(program), left_out
