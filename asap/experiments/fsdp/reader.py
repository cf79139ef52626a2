"""An experiment from the settings of a program under FSDP."""

from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.experiments.experiment import Experiment
from asap.experiments.named_model import NO_MODEL, name_at_end, read_named_model
from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.settings.unsaid import no_batch
from asap.experiments.tables.planned import planned
from asap.models import Workload
from asap.stacks.reading import global_batch_of, layout_of
from asap.stacks.registry import STACK
from asap.stacks.spec import Spec

_GATHERED = "weights that stay gathered until the backward pass are not modelled: taken as gathered twice"
_KEEPS_GATHERED = ("shard_grad_op", "_hybrid_shard_zero2")


def read_program(
    settings: StackSettings,
    spec: Spec,
    path: Path,
    experiment: Experiment,
    model: str | None,
    workload: Workload,
    unsettled: frozenset[str] = frozenset(),
) -> Experiment:
    """``experiment`` with what settings of a program say.

    Args:
        settings: under the program's names.
        spec: the table of the program.
        path: the file that says them.
        experiment: what is known besides.
        model: the name or folder of what is trained.
        workload: numerics and lengths.
        unsettled: settings that only a run can tell.

    Raises:
        ConfigError: a value of the wrong kind, or degrees that do not divide the devices.
    """
    recorded: dict[str, Any] = {**settings.harmless(), STACK: spec.name}
    notes: tuple[str, ...] = ()
    batch = None
    asked = {(spec.batch.whole or spec.batch.micro).keys[0]}
    try:
        plan, notes = planned(spec, recorded, experiment.hardware.devices, unsettled)
        batch = None if asked & unsettled else global_batch_of(spec, recorded, plan)
        sharded = layout_of(spec, recorded) != "replica"
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint) from error
    if spec.axes.strategy and spec.axes.strategy.said(spec.with_defaults(recorded)) in _KEEPS_GATHERED:
        notes += (_GATHERED,)
    if batch is None and (spec.batch.whole or plan or asked & unsettled):
        notes += (no_batch([*asked]),)
    if experiment.model is None and model and (name := name_at_end(model)):
        found, more = read_named_model(name)
        experiment, notes = experiment.model_copy(update={"model": found}), (*notes, *more)
    elif experiment.model is None:
        notes += (NO_MODEL,)
    stated = {
        "global_batch": batch,
        "framework": spec.framework,
        "zero_stage": 3 if sharded else 0,
        "context_parallel": "ulysses" if plan and plan.degree("seq") > 1 else None,
    }
    return experiment.model_copy(
        update={
            "plan": plan,
            "workload": workload.model_copy(update=stated),
            "hyperparameters": experiment.hyperparameters | recorded,
            "provenance": experiment.provenance | {"plan": path.name, "workload": path.name},
            "notes": (*experiment.notes, *notes, *settings.misspelt()),
        }
    )
