"""What to paste into the launcher of the run's own stack."""

from collections.abc import Mapping
from types import MappingProxyType

from asap.experiments import Experiment
from asap.plans import Plan
from asap.plans.degrees import FOLDED
from asap.proposals.proposal import Overrides
from asap.stacks.launchers import (
    Stack,
    drop_unknown_policy,
    form_of,
    inexpressible,
    launch_lines,
    settings_of,
    stack_of,
    words_of,
)
from asap.stacks.registry import contracts, spec_of, table_of
from asap.stacks.writing import is_of_primus
from asap.study.flags import flags_for
from asap.study.start import is_start
from asap.study.study import Study


def overrides_of(study: Study, plan: Plan, whole: bool = False) -> Overrides:
    """What to paste for the run's own launcher to run a plan; takes and raises what :func:`launcher_line` does."""
    stack = words_of(_stack(study), study.experiment.hyperparameters)
    return Overrides(stack=stack, text=launcher_line(study, plan, whole=whole), exports=flags_for(study, plan).exports)


def launcher_line(
    study: Study, plan: Plan, beside: Mapping[str, str] = MappingProxyType({}), whole: bool = False
) -> str:
    """What to change for the run's own launcher to run a plan, with settings beside it; all of the plan if ``whole``.

    Raises:
        PlanError: the launcher has no words for it.
    """
    experiment, stack = study.experiment, _stack(study)
    if spec_of(stack, experiment.hyperparameters) is None:
        return str(plan)
    layers = _layers(experiment, stack)
    batch, topology = experiment.workload.global_batch, study.slice.topology if study.slice else None
    known = form_of(experiment.hyperparameters) if whole else _settings(experiment)
    current = known if _is_configured(study) else None
    if current is None and not whole and study.plan is not None and not is_start(experiment):
        batch = batch if plan.microbatches else None
        over, now = experiment.workload.experts_over, drop_unknown_policy(study.plan, stack)
        if plan.remat == study.plan.remat:
            plan = plan.model_copy(update={"remat": now.remat})
        if now == study.plan or plan.remat is None:
            current = settings_of(now, stack, global_batch=batch, layers=layers, topology=topology, experts_over=over)
    sequence = experiment.workload.sequence_length if whole or is_start(experiment) else None
    return launch_lines(
        plan, stack, current, global_batch=batch, layers=layers, topology=topology, sequence=sequence, beside=beside,
    )  # fmt: skip


def line_elsewhere(study: Study, plan: Plan, stack: Stack) -> str:
    """What another stack than the run's own takes to run a plan of the same model and batch.

    Raises:
        PlanError: the stack has no words for it.
    """
    work, model = study.experiment.workload, study.experiment.model
    return launch_lines(
        plan, stack, None, global_batch=work.global_batch, layers=model.layers if model else None,
        topology=study.slice.topology if study.slice else None, sequence=work.sequence_length,
    )  # fmt: skip


def start_line(study: Study) -> str | None:
    """The line for the plan that is assumed as a start; ``None`` where a plan is on record."""
    return launcher_line(study, study.plan) if study.plan is not None and is_start(study.experiment) else None


def mesh_that_stays(study: Study, plan: Plan) -> tuple[str, ...]:
    """Degrees above one that a plan shares with what runs now, as the run's own launcher writes them."""
    if study.plan is None or is_start(study.experiment):
        return ()
    stack = stack_of(study.experiment.workload.framework)
    over = study.experiment.workload.experts_over
    new, now = (settings_of(Plan(ici=each.ici, dcn=each.dcn), stack, experts_over=over) for each in (plan, study.plan))
    same = [key for key in new if "parallel" in key and new[key] == now.get(key) and new[key] != "1"]
    if is_of_primus(study.experiment.hyperparameters):
        return tuple(f"{key}: {new[key]}" for key in same)
    if (table := spec_of(stack, study.experiment.hyperparameters)) and table.form == "switches":
        return tuple(f"--{key.replace('_', '-')} {new[key]}" for key in same)
    return tuple(f"{key}={new[key]}" for key in same)


def why_not_launched(study: Study, plan: Plan) -> str | None:
    """Why the run's own launcher has no words for a plan; ``None`` if it has."""
    experiment, stack = study.experiment, _stack(study)
    unsaid = experiment.workload.framework is None or spec_of(stack, experiment.hyperparameters) is None
    if unsaid or (contracts()[stack].kin == "jax" and not _is_configured(study)):
        return None
    batch = experiment.workload.global_batch
    return inexpressible(plan, stack, _settings(experiment), batch, _layers(experiment, stack))


def _stack(study: Study) -> Stack:
    """Whose words a plan is said in; ``settings``: our own, as no table has any for what is on record."""
    stack = stack_of(study.experiment.workload.framework, study.chip and study.chip.kind)
    return stack if spec_of(stack, study.experiment.hyperparameters) else "settings"


def _is_configured(study: Study) -> bool:
    """Whether the record has settings of the stack that the line to paste goes on top of."""
    known = table_of(name := study.experiment.workload.framework) or contracts()[stack_of(name)].kin != "jax"
    return bool(known) and bool(study.experiment.hyperparameters)


def _settings(experiment: Experiment) -> Mapping[str, object]:
    """The settings on record, with where experts lie, which they may leave to the model."""
    over = experiment.workload.experts_over
    return {**experiment.hyperparameters, FOLDED: over} if over else experiment.hyperparameters


def _layers(experiment: Experiment, stack: Stack) -> int | None:
    """Layers as a launcher takes them: of those in a pipeline MaxText is told, Megatron counts its own."""
    layers = experiment.model.layers if experiment.model else None
    return (experiment.workload.pipelined_layers or layers) if contracts()[stack].kin == "jax" else layers
