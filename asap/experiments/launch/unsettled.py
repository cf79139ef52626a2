"""What stays unknown of a run where a script sets a key of MaxText to what only a run can tell."""

from collections.abc import Collection
from typing import Any

from asap.experiments.experiment import Experiment
from asap.experiments.maxtext.architecture import UNNAMED, decides_model
from asap.models import Architecture
from asap.stacks.maxtext.axes import decides_mesh

_BATCH = frozenset(("per_device_batch_size", "gradient_accumulation_steps"))
_SEQUENCE = frozenset(("max_target_length",))
_OF_PLAN = {
    "remat": frozenset(("remat_policy",)),
    "microbatches": frozenset(("gradient_accumulation_steps", "num_pipeline_microbatches")),
}


def without_unsettled(experiment: Experiment, keys: Collection[str]) -> Experiment:
    """``experiment`` without what hangs on keys whose value is not said; each of it is named.

    Args:
        experiment: as read with MaxText's defaults in the place of such keys.
        keys: of MaxText, set to variables that nothing settles.
    """
    notes: list[str] = []

    def hangs_on(what: str, found: Collection[str]) -> bool:
        if found:
            notes.append(f"the {what} is unknown: it hangs on {', '.join(sorted(found))}; add it as key=value")
        return bool(found)

    update: dict[str, Any] = {}
    workload, plan = experiment.workload, experiment.plan
    if hangs_on("model", {key for key in keys if decides_model(key)}):
        update["model"] = Architecture()
        experiment = experiment.model_copy(
            update={"notes": tuple(note for note in experiment.notes if not note.startswith(UNNAMED))}
        )
    if hangs_on("batch", _BATCH & set(keys)):
        workload = workload.model_copy(update={"global_batch": None})
    if hangs_on("sequence length", _SEQUENCE & set(keys)):
        workload = workload.model_copy(update={"sequence_length": None})
    if plan is not None and hangs_on("plan", {key for key in keys if decides_mesh(key, experiment.hardware.slices)}):
        plan = None
    if plan is not None:
        open_fields = [field for field, said in _OF_PLAN.items() if said & set(keys)]
        plan = plan.model_copy(update=dict.fromkeys(open_fields))
    update |= {"workload": workload, "plan": plan, "notes": (*experiment.notes, *notes)}
    return experiment.model_copy(update=update)
