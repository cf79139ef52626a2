"""Published rows as runs: architecture, workload, hardware and plan.

A row that lacks what a prediction needs is skipped with the reason. What can be inferred from the rest of a row is
inferred in ``run_text.py`` and ``run_layout.py``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from asap.calibration.dataset.rows import Row, UnusableRowError, count, number
from asap.calibration.dataset.run_layout import experts_over, mesh_of, meshes_of, microbatches_of, step_time_of_flops
from asap.calibration.dataset.run_text import (
    attention_of,
    compiled_loss_of,
    compiled_of,
    context_parallel_of,
    expert_dispatcher_of,
    fabric_of,
    family_of,
    framework_of,
    has_fused_linear_cross_entropy,
    loss_chunks_of,
    network_of,
    node_of,
    overlaps_experts_of,
    padded_capacity_of,
    remat_of,
    weight_precision_of,
    year_of,
    zero_stage_of,
)
from asap.core.errors import AsapError
from asap.core.units import GIB
from asap.hardware.catalogue import find_chip
from asap.hardware.instances import resize_node
from asap.hardware.names import resolve_hardware
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload, architecture_from_row
from asap.plans import Plan
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import framework_class
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.physics import step_bounds
from asap.prediction.step_model.step_parts import stack

IMPOSSIBLE = "no step can take so short or so long"
TRUSTED = ("A", "A-", "B")
SEVERAL_PRECISIONS = ("nemo",)  # frameworks whose published runs are as often in fp8 as in bf16
_OWN_SHAPES = ("n_layers", "d_model", "n_heads", "n_kv_heads", "head_dim", "d_ff", "vocab", "n_experts", "mtp_layers")


@dataclass(frozen=True)
class PublishedRun:
    """One published run. ``step_time`` is ``None`` for runs that ran out of memory."""

    id: str
    source: str
    group: str
    chip: str
    framework: str
    family: str
    architecture: Architecture
    workload: Workload
    hardware: Slice
    plan: Plan
    step_time: float | None
    out_of_memory: bool
    fabric: str | None
    memory_bytes: float | None = None
    """Peak HBM of the fullest device, where it was published."""
    remat_inferred: bool = False
    """Whether the policy in ``plan`` is inferred, not published."""
    year: int | None = None
    """Of the software, where the row tells."""
    network_stated: bool = False
    """Whether the rate between nodes is published, and not that of the chip's maker."""

    @cached_property
    def inputs(self) -> StepInputs:
        """What the step model predicts it from."""
        return step_inputs([self.plan], self.architecture, self.workload, self.hardware)


def read_runs(rows: Sequence[Row], models: Mapping[str, Row]) -> Iterator[PublishedRun | str]:
    """Each row as a run, or the reason why not: also that no step can have taken so long (:func:`step_bounds`)."""
    found = [_read(row, models) for row in rows]
    timed = [run for run in found if isinstance(run, PublishedRun) and run.step_time is not None]
    bounds = iter(step_bounds(stack([run.inputs for run in timed])).each() if timed else ())
    for run in found:
        seconds = run.step_time if isinstance(run, PublishedRun) else None
        yield IMPOSSIBLE if seconds is not None and next(bounds).objection(seconds) else run


def _read(row: Row, models: Mapping[str, Row]) -> PublishedRun | str:
    try:
        return read_run(row, models)
    except UnusableRowError as reason:
        return reason.message


def read_run(row: Row, models: Mapping[str, Row]) -> PublishedRun:
    """One row as a run.

    Args:
        row: of the measurements.
        models: architecture rows by name.

    Raises:
        UnusableRowError: something is missing, unknown or contradictory.
    """
    try:
        return _run(row, models)
    except UnusableRowError:
        raise
    except (AsapError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        reason = error.message if isinstance(error, AsapError) else "broken row"
        raise UnusableRowError(reason) from error


def _run(row: Row, models: Mapping[str, Row]) -> PublishedRun:
    status = str(row.get("status"))
    out_of_memory = status.startswith("oom")
    if status != "ok" and not out_of_memory:
        raise UnusableRowError("failed for another reason than memory")
    if row.get("trust") not in TRUSTED or row.get("config_log_mismatch") or row.get("degrees_mismatch"):
        raise UnusableRowError("not trusted")
    if row.get("task") == "lora":
        raise UnusableRowError("not a full training step (LoRA)")
    hardware = _hardware(row)
    if row.get("precision") is None and framework_class(framework_of(row)) in SEVERAL_PRECISIONS:
        raise UnusableRowError("precision unknown")
    architecture = _architecture(row, models)
    plan, workload = _plan_and_workload(row, hardware)
    step_time = None if out_of_memory else _step_time(row, workload, hardware)
    if step_time is None and not out_of_memory:
        step_time = step_time_of_flops(row, architecture, workload, hardware)
    if step_time is None and not out_of_memory:
        raise UnusableRowError("no step time and no tokens per second")
    return PublishedRun(
        id=str(row.get("id")), source=str(row.get("source_key")), group=str(row.get("group") or row.get("id")),
        chip=hardware.chip.name, framework=framework_of(row), family=family_of(str(row.get("model"))),
        architecture=architecture, workload=workload, hardware=hardware, plan=plan,
        step_time=step_time, out_of_memory=out_of_memory, fabric=fabric_of(row),
        year=year_of(row), network_stated=network_of(row) is not None,
        memory_bytes=None if out_of_memory else _gibibytes(row),
    )  # fmt: skip


def _hardware(row: Row) -> Slice:
    name = str(row.get("hardware", ""))
    found = find_chip(name)
    if found is None:
        raise UnusableRowError("unknown hardware")
    chips = count(row, "n_chips") or count(row, "n_devices")
    if chips is None:
        raise UnusableRowError("number of chips unknown")
    slices = math.prod(mesh_of(row, "derived_dcn_mesh").values()) if found.chip.torus else 1
    hardware = resolve_hardware(
        found.chip.name, _topology(row, chips // slices), slices, chips * found.chip.devices
    ).slice
    return _set_network(hardware, row)


def _topology(row: Row, chips: int) -> tuple[int, ...] | None:
    for word in str(row.get("topology", "")).replace("(", " ").split():
        parts = word.casefold().split("x")
        if len(parts) > 1 and all(p.isdigit() for p in parts) and math.prod(map(int, parts)) == chips:
            return tuple(map(int, parts))
    return None


def _set_network(hardware: Slice, row: Row) -> Slice:
    """The slice with the network and the node that the row describes."""
    chip = hardware.chip
    if chip.scaleup is None:
        return hardware
    node = node_of(row)
    if node:
        chip = resize_node(hardware, node).chip
    rate = network_of(row)
    if rate:
        update = {"bandwidth": rate / min(node or 8, 8)}
        chip = chip.model_copy(update={"network": chip.network.model_copy(update=update)})
    return Slice(chip, hardware.chips_per_slice, hardware.topology, hardware.slices)


def _architecture(row: Row, models: Mapping[str, Row]) -> Architecture:
    """The model's shapes, overridden by the run's own."""
    known = models.get(str(row.get("model_ref"))) or models.get(str(row.get("model")))
    if known is None:
        raise UnusableRowError("unknown model")
    own = {key: row[key] for key in _OWN_SHAPES if row.get(key) is not None}
    architecture = architecture_from_row({**known, **own})
    if missing := architecture.missing():
        raise UnusableRowError(f"model without {', '.join(missing)}")
    return architecture


def _plan_and_workload(row: Row, hardware: Slice) -> tuple[Plan, Workload]:
    ici, dcn = meshes_of(row, hardware.devices)
    raw = row.get("raw_config") or {}
    sequence = count(row, "seq_len", "derived_seq_len") or count(raw, "max_target_length")
    batch = count(row, "global_batch_seqs", "derived_global_batch_seqs")
    if batch is None and sequence and (tokens := count(row, "global_batch_tokens")):
        batch = round(tokens / sequence)
    if batch is None and (each := number(row, "per_device_batch_seqs")):
        batch = round(each * hardware.devices)
    if batch is None:
        raise UnusableRowError("global batch unknown")
    if sequence is None:
        raise UnusableRowError("sequence length unknown")
    remat, offloaded = remat_of(row)
    shards = ici.replica * ici.data * ici.expert * dcn.replica * dcn.data * dcn.expert
    plan = Plan(
        ici=ici, dcn=dcn, microbatches=microbatches_of(row, batch, shards), remat=remat,
        pipeline_repeats=(count(row, "vpp") or 1) if ici.stage > 1 else 1,
        offload=("activations",) if offloaded else (),
    )  # fmt: skip
    sharding = row.get("megatron_sp")
    workload = Workload(
        global_batch=batch, sequence_length=sequence, precision=row.get("precision"), optimizer=row.get("optimizer"),
        weight_precision=weight_precision_of(row), gradient_precision=row.get("gradient_precision"),
        first_moment_precision=row.get("first_moment"), second_moment_precision=row.get("second_moment"),
        launch_blocking=row.get("launch_blocking"), expert_dispatcher=expert_dispatcher_of(row),
        overlaps_tensor=row.get("tp_comm_overlap"),
        attention=attention_of(row), framework=framework_of(row), zero_stage=zero_stage_of(row),
        loss_chunks=loss_chunks_of(row), fused_linear_cross_entropy=has_fused_linear_cross_entropy(row),
        context_parallel=context_parallel_of(row), capacity_factor=padded_capacity_of(row), compiled=compiled_of(row),
        compiled_loss=compiled_loss_of(row), sequence_parallel=sharding if isinstance(sharding, bool) else None,
        experts_over=experts_over(row, ici), overlaps_experts=overlaps_experts_of(row),
        cuda_graphs=row.get("cuda_graphs"), graph_modules=tuple(row.get("cuda_graph_modules") or ()),
    )  # fmt: skip
    return plan, workload


def _gibibytes(row: Row) -> float | None:
    found = number(row, "memory_gib")
    return found * GIB if found else None


def _step_time(row: Row, workload: Workload, hardware: Slice) -> float | None:
    stated = number(row, "step_time_s", "derived_step_time_s")
    tokens = float(workload.tokens or 0)
    rate = number(row, "tokens_per_s")
    for key, units in (("device", hardware.devices), ("chip", hardware.chips)):
        each = number(row, f"tokens_per_s_per_{key}")
        rate = rate or (each * units if each else None)
    return stated or (tokens / rate if rate else None)
