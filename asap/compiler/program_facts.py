"""What a mapping program is checked against: the model and the machine of an experiment, or of their names."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from asap.compiler.reference.expressible import mapping_target
from asap.core.errors import InsufficientEvidenceError, NotFoundError
from asap.core.text import plain
from asap.experiments import Experiment, ExperimentStore
from asap.hardware import Slice, resolve_hardware
from asap.mapping.axis_rules import read_rules
from asap.mapping.coverage import Target
from asap.mapping.explain import Explanation, explain
from asap.mapping.language.feedback import nearest
from asap.mapping.language.format import format_program
from asap.mapping.language.program import Program
from asap.mapping.plan_program import plan_text
from asap.models import Architecture, Workload, find_architecture
from asap.models.catalogue import known_architectures
from asap.plans import Plan
from asap.plans.validity import Constraints
from asap.stacks.constraints import constraints_of
from asap.study.open_study import reopen_study
from asap.study.study import Study

if TYPE_CHECKING:
    from asap.prediction.prediction import Prediction


@dataclass(frozen=True)
class ProgramFacts:
    """A model with its tensors, a machine, what limits the mesh, what a step works on, and the run on record with all
    that was measured of it; ``None`` is unknown."""

    target: Target | None
    hardware: Slice | None
    constraints: Constraints
    model: Architecture | None
    workload: Workload
    study: Study | None = None

    def both(self, where: str) -> tuple[Target, Slice]:
        """Model and machine, for what needs both.

        Raises:
            InsufficientEvidenceError: one of them is not known.
        """
        if self.target is None or self.hardware is None:
            hint = "give --model and --hardware, or --experiment"
            raise InsufficientEvidenceError("it needs a model and a machine", where=where, hint=hint)
        return self.target, self.hardware

    def explained(self, program: Program) -> Explanation:
        """A checked program in words, with its prediction where model, machine, batch and sequence are known."""
        found, predicted = explain(program, self.target), self._predicted(program)
        if predicted is None:
            return found
        hbm = predicted.memory.total if predicted.memory else None
        said = {"step_time": predicted.step_time, "hbm": hbm, "notes": predicted.notes}
        return found.model_copy(update=said)

    def _predicted(self, program: Program) -> "Prediction | None":
        from asap.prediction.predict_program import predict_program
        from asap.prediction.predict_study import expect

        if self.target is None or self.hardware is None or program.mesh is None:
            return None
        on_record = partial(expect, self.study) if self.study else None
        try:
            return predict_program(program, self.target, self.model, self.workload, self.hardware, on_record)
        except InsufficientEvidenceError:
            return None


def program_facts(
    experiment: Experiment | None = None, model: str | None = None, hardware: str | None = None
) -> ProgramFacts:
    """The facts of an experiment; a model and hardware that are named replace those on its record.

    Raises:
        NotFoundError: the model or the chip is unknown.
        ConfigError: the name of the hardware does not say how many chips there are.
        InsufficientEvidenceError: a shape of the model is unknown.
    """
    known = _model(model) if model else (experiment.model if experiment else None)
    workload = experiment.workload if experiment else Workload()
    machine = resolve_hardware(hardware).slice if hardware else _machine(experiment)
    study = reopen_study(experiment, ExperimentStore()) if experiment and machine and not (model or hardware) else None
    return ProgramFacts(
        mapping_target(known, workload) if known else None,
        machine,
        constraints_of(
            known, workload, machine.devices_per_slice if machine else None, machine.slices if machine else 1
        ),
        known,
        workload,
        study,
    )


def _model(name: str) -> Architecture:
    found = find_architecture(name)
    if found is None:
        near = nearest(name, known_architectures())
        hint = f"did you mean {near}?" if near else "or give an experiment with --experiment"
        raise NotFoundError("no such model", where=plain(name, 60), hint=hint)
    return found


def _machine(experiment: Experiment | None) -> Slice | None:
    if experiment is None:
        return None
    said = experiment.hardware
    name = said.chip or said.name
    try:
        return resolve_hardware(name, said.topology, said.slices, said.devices).slice if name else None
    except NotFoundError:
        return None  # a record of something else than a known chip, such as a CPU


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
    program, left_out = read_rules(record.workload.framework, record.hyperparameters, chosen, target)
    return format_program(program), left_out
