"""The mesh and the microbatches of a published run, from whichever degrees its row has."""

import math
from collections.abc import Mapping
from typing import Any

from asap.calibration.dataset.rows import Row, UnusableRowError, count, number
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload, count_parameters
from asap.models.workload import FoldedAxis
from asap.plans import Mesh
from asap.plans.degrees import folded_axes
from asap.prediction.step_model.groups import framework_class

_JAX_AXES = {
    "data": "replica", "fsdp": "data", "fsdp_transpose": "data", "tensor": "model", "tensor_transpose": "model",
    "context": "seq", "sequence": "seq", "expert": "expert", "stage": "stage", "pipeline": "stage",
}  # fmt: skip


def mesh_of(row: Row, key: str) -> dict[str, int]:
    """A mesh that a row has as a table: axis → degree; empty if it has none."""
    mesh = row.get(key) or {}
    return {str(axis): int(degree) for axis, degree in mesh.items()}


def _axes(mesh: Mapping[str, int]) -> Mesh:
    degrees: dict[str, int] = {}
    for axis, degree in mesh.items():
        if axis not in _JAX_AXES:
            raise UnusableRowError("unknown mesh axis")
        degrees[_JAX_AXES[axis]] = degrees.get(_JAX_AXES[axis], 1) * degree
    return Mesh(**degrees)


def meshes_of(row: Row, devices: int) -> tuple[Mesh, Mesh]:
    """ICI and DCN degrees: as a mesh where the row has one, else from the degrees of GPU frameworks."""
    if row.get("derived_ici_mesh"):
        ici, dcn = _axes(mesh_of(row, "derived_ici_mesh")), _axes(mesh_of(row, "derived_dcn_mesh"))
        if ici.devices * dcn.devices != devices:
            raise UnusableRowError("degrees do not multiply to the devices")
        return ici, dcn
    return _degrees(row, devices), Mesh()


def _degrees(row: Row, devices: int) -> Mesh:
    tensor, stages = count(row, "tp", "derived_tp"), count(row, "pp", "derived_pp")
    context = count(row, "cp") or 1
    batch_groups = count(row, "dp", "derived_dp", "fsdp", "derived_fsdp")
    stage = row.get("zero_stage")  # stages 1 and 2 shard no parameters, whatever the degree is called
    sharded = stage == 3 or (stage is None and count(row, "fsdp", "derived_fsdp") is not None)
    if tensor is None and stages is None and batch_groups != devices and devices > 1:
        raise UnusableRowError("degrees unknown")
    if stages is None:
        known = (tensor or 1) * context * (batch_groups or 1)
        stages = devices // known if batch_groups and not sharded else 1
    if tensor is None:
        tensor = devices // (stages * context * (batch_groups or devices))
    groups, rest = divmod(devices, tensor * stages * context)
    if rest or groups < 1:
        raise UnusableRowError("degrees do not multiply to the devices")
    over = _folded(row, tensor, context, groups)
    whole = math.prod({"model": tensor, "seq": context}[axis] for axis in over)
    expert = math.gcd(groups, max((count(row, "ep") or 1) // whole, 1))
    groups //= expert
    shards = _shards(row, groups) if sharded else 1
    if groups % shards:
        raise UnusableRowError("degrees do not multiply to the devices")
    return Mesh(replica=groups // shards, data=shards, seq=context, model=tensor, expert=expert, stage=stages)


def experts_over(row: Row, mesh: Mesh) -> tuple[FoldedAxis, ...]:
    """Axes beside its own over which the experts of a run lie whole."""
    return _folded(row, mesh.model, mesh.seq, mesh.replica * mesh.data * mesh.expert)


def _folded(row: Row, tensor: int, context: int, groups: int) -> tuple[FoldedAxis, ...]:
    """As Megatron-Core lays experts. Where it is not said, tensor parallelism splits them if their ranks allow it."""
    experts = count(row, "ep") or 1
    if framework_class(str(row.get("framework"))) not in ("nemo", "megatron"):
        return ()
    split = count(row, "etp") or (tensor if not context * groups % experts else 1)
    return folded_axes(experts, split, tensor, context)


def _shards(row: Row, groups: int) -> int:
    """Devices over which parameters are sharded; a bare 1 is a switch, not a degree, where there are more devices."""
    degree = count(row, "fsdp", "derived_fsdp") or 1
    return groups if degree == 1 or groups % degree else min(degree, groups)


def microbatches_of(row: Row, batch: int, shards: int) -> int | None:
    """Microbatches as stated, or from the sequences of one; ``None`` if neither is known."""
    stated = count(row, "n_microbatches")
    if stated is None and (each := number(row, "micro_batch_seqs")):
        stated = round(min(max(batch / (shards * each), 1), batch))
    return stated or count(row, "grad_accum")


TERA = 1e12  # of TFLOP/s


def step_time_of_flops(
    row: Mapping[str, Any], architecture: Architecture, workload: Workload, hardware: Slice
) -> float | None:
    """Seconds of a step, or ``None`` if this is not a dense MaxText run with published FLOP/s."""
    rate = row.get("tflops_per_s_per_device")
    if row.get("framework") != "MaxText" or architecture.is_moe or not isinstance(rate, int | float) or rate <= 0:
        return None
    tokens = float(workload.tokens or 0)
    scores = (architecture.layers or 0) * (architecture.heads or 0) * (architecture.head_dim or 0)
    attention = 12.0 * scores * (workload.sequence_length or 0)
    flops = (6.0 * count_parameters(architecture).total + attention) * tokens
    return flops / (rate * TERA * hardware.devices)
