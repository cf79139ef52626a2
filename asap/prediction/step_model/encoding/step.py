"""A run under plans, in numbers."""

from collections.abc import Sequence

from asap.core.errors import InsufficientEvidenceError
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.step_model.encoding.hardware import hardware_inputs
from asap.prediction.step_model.encoding.model import model_inputs
from asap.prediction.step_model.encoding.plan import plan_inputs
from asap.prediction.step_model.encoding.workload import under_meshes, workload_under_plans
from asap.prediction.step_model.inputs import StepInputs


def step_inputs(plans: Sequence[Plan], architecture: Architecture, workload: Workload, hardware: Slice) -> StepInputs:
    """The numbers of one step under each plan.

    Raises:
        InsufficientEvidenceError: the architecture, the batch or the sequence is not known.
    """
    require(architecture, workload)
    model = model_inputs(architecture)
    layout = plan_inputs(plans, model, workload)
    work = workload_under_plans(plans, workload, architecture)
    return StepInputs(model, under_meshes(work, layout, workload), hardware_inputs(hardware, workload), layout)


def require(architecture: Architecture | None, workload: Workload) -> Architecture:
    """The architecture, if it, the batch and the sequence are known.

    Raises:
        InsufficientEvidenceError: names what is missing.
    """
    missing = ["the architecture"] if architecture is None else [*architecture.missing()]
    missing += [name for name in ("global_batch", "sequence_length") if getattr(workload, name) is None]
    if missing or architecture is None:
        where = architecture.name if architecture else "model"
        raise InsufficientEvidenceError(
            f"a prediction needs {', '.join(missing)}", where=where, hint="add what is missing to the experiment"
        )
    return architecture
