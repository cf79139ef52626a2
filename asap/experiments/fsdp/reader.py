"""An experiment from the settings of a program under FSDP."""

from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.experiments.experiment import Experiment
from asap.experiments.named_model import NO_MODEL, name_at_end, read_named_model
from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.settings.unsaid import no_batch
from asap.models import Workload
from asap.plans.degrees import InexpressiblePlanError
from asap.plans.fsdp import settings as fsdp
from asap.plans.fsdp.words import PROGRAM, Words
from asap.plans.plan import Plan

_GATHERED = "weights that stay gathered until the backward pass are not modelled: taken as gathered twice"


def read_program(
    settings: StackSettings,
    words: Words,
    path: Path,
    experiment: Experiment,
    model: str | None,
    workload: Workload,
    unsettled: frozenset[str] = frozenset(),
) -> Experiment:
    """``experiment`` with what settings of a program say.

    Args:
        settings: under the program's names.
        words: of the program.
        path: the file that says them.
        experiment: what is known besides.
        model: the name or folder of what is trained.
        workload: numerics and lengths.
        unsettled: settings that only a run can tell.

    Raises:
        ConfigError: a value of the wrong kind, or degrees that do not divide the devices.
    """
    recorded: dict[str, Any] = {**settings.harmless(), PROGRAM: words.name}
    notes: tuple[str, ...] = ()
    batch = None
    asked = [words.batch] if words.batch else [words.micro_batch]
    try:
        plan, notes = _plan(recorded, words, experiment.hardware.devices, unsettled)
        batch = None if {*asked} & unsettled else fsdp.global_batch_of(recorded, plan)
        sharded = fsdp.shards(recorded)
        notes += (_GATHERED,) if fsdp.keeps_gathered(recorded) else ()
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint) from error
    if batch is None and (words.batch or plan or {*asked} & unsettled):
        notes += (no_batch(asked),)
    if experiment.model is None and model and (name := name_at_end(model)):
        found, more = read_named_model(name)
        experiment, notes = experiment.model_copy(update={"model": found}), (*notes, *more)
    elif experiment.model is None:
        notes += (NO_MODEL,)
    stated = {
        "global_batch": batch,
        "framework": f"{words.name} FSDP",
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


def _plan(
    recorded: dict[str, Any], words: Words, devices: int | None, unsettled: frozenset[str]
) -> tuple[Plan | None, tuple[str, ...]]:
    if devices is None:
        return None, ("how many devices there are is not said: add --hardware, such as h100-64",)
    degrees = {words.context, words.tensor, words.replicas, words.strategy, *words.offload} & unsettled
    if degrees:
        return None, (f"the plan is unknown: it hangs on {', '.join(sorted(map(str, degrees)))}; add as key=value",)
    known = {key: value for key, value in recorded.items() if key not in unsettled}
    open_batch = {key for key in (words.batch, words.micro_batch, words.accumulation) if key} & unsettled
    try:
        plan = fsdp.from_settings({**known, **dict.fromkeys(open_batch, None)}, devices)
    except InexpressiblePlanError as error:
        return None, (f"the plan is unknown: {error.message}",)
    asked = {words.batch or words.micro_batch}
    counts = open_batch - asked if words.accumulation else open_batch
    update: dict[str, Any] = {"microbatches": None} if counts else {}
    update |= {"remat": None} if words.recompute in unsettled else {}
    left = sorted((open_batch | ({words.recompute} & unsettled)) - asked)
    notes = (f"set by a variable whose value is not said: {', '.join(left)}",) if left else ()
    return plan.model_copy(update=update), notes
