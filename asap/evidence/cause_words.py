"""Causes of a measurement in words: what it would be, what else would be seen, and the check that tells."""

import math
from dataclasses import replace

from asap.core.errors import AsapError
from asap.core.units import format_bytes, format_rate, format_seconds, significant
from asap.evidence.readings import CauseName, Run, Variant, passes_of_experts
from asap.plans.axes import Axis
from asap.prediction.prediction import Prediction

_TOLD_BY_MEMORY = 0.1
"""Relative difference of HBM from which on its peak tells two readings apart."""


def sentence(variant: Variant, run: Run) -> str:
    """What it would be, without a capital and a full stop."""
    size = significant(variant.size, 2)
    match variant.cause:
        case "network":
            usual = format_rate(run.hardware.chip.network.bandwidth, "B")
            rate = f"{format_rate(variant.size, 'B')}/s a device in place of {usual}/s would explain it"
            return f"the network between {_parts(run)} is not on its fast path ({rate})"
        case "slow device":
            return f"a device is slow, {size} times: at its power or thermal limit, shared, or faulty; all wait for it"
        case "input":
            return "the devices wait for data from the input pipeline or the file system"
        case "interruptions":
            return "checkpoints, evaluation or compilation are inside of the steps that were averaged"
        case "sequence":
            return f"the sequences have {variant.size:,.0f} tokens, not {run.workload.sequence_length:,}"
        case "batch":
            return f"the step is of {variant.size:,.0f} sequences, not {run.workload.global_batch:,}"
        case "precision":
            return (
                f"products are computed in {variant.run.workload.precision}, not in {run.workload.precision or 'bf16'}"
            )
        case "attention":
            return "attention is not fused: its scores are written to HBM"
        case "recomputation":
            return "every layer is computed again in the backward pass"
        case "flags":
            return (
                f"the compiler runs without the flags of published runs, which would make a step {size} times as long"
            )
        case "debugging":
            return "the host waits for every kernel: eager or debug mode (CUDA_LAUNCH_BLOCKING, anomaly detection)"
        case "counting":
            return _counting(variant, run)
        case "experts":
            gathered = ", and ZeRO-3 gathers their weights one by one" if run.workload.zero_stage == 3 else ""
            passes = f"{passes_of_experts(run):,} passes a step, {format_seconds(variant.size)} each"
            return f"the program computes experts one by one{gathered} ({passes})"
        case "no recomputation":
            return f"recomputation ({run.plan.remat}) is not in effect: every activation is kept"
        case "whole states":
            return "parameters, gradients and optimizer are not sharded over the data-parallel devices"
        case "peaks":
            return "evaluation, a checkpoint or a longer batch needs more than a training step"
        case "other processes":
            return "another process holds memory of the device"
        case "fragmentation":
            return "the allocator holds memory that it cannot use (fragmentation)"


def _counting(variant: Variant, run: Run) -> str:
    times = variant.added if variant.added >= 1 else 1 / variant.added
    if math.isclose(times, run.plan.microbatches or 1) and times > 1:
        return f"the figure is of {'all' if variant.added > 1 else 'one'} of {times:.0f} microbatches, not of a step"
    if math.isclose(times, 1000.0):
        return f"the figure is in {'milliseconds' if variant.added > 1 else 'thousands of seconds'}"
    if math.isclose(times, 60.0):
        return f"the figure is {'in minutes' if variant.added < 1 else 'a minute counted as a second'}"
    if variant.added > 1:
        return f"the figure is of {times:.0f} steps, as logs that print every {times:.0f} give it"
    return f"the figure is of one step in {times:.0f}, or of one of {times:.0f} nodes"


def expectation(variant: Variant, run: Run, now: Prediction, then: Prediction) -> str:
    """What else would be seen."""
    match variant.cause:
        case "network":
            return _alone(run) or "Steps grow with the number of nodes."
        case "slow device":
            return "One rank arrives last at every collective, and its clock is low or its temperature high."
        case "input":
            return "The devices are idle between steps, and steps differ; on random data the step is as modelled."
        case "interruptions":
            return "Most steps are as fast as modelled, and a few are far slower."
        case "flags":
            return "Collectives and copies to the host stand between the operations of a profile, not beside them."
        case "debugging":
            return "The duty cycle of the devices is low."
        case "experts":
            return "A profile shows very many small matrix products and gathers, and the devices idle between them."
        case "counting":
            return "Tokens a second as the log counts them do not follow from batch, length and step."
        case _:
            return _memory(now, then)


def _memory(now: Prediction, then: Prediction) -> str:
    if now.memory is None or then.memory is None:
        return ""
    before, after = now.memory.total.value, then.memory.total.value
    if abs(after / before - 1) < _TOLD_BY_MEMORY:
        return f"HBM stays as it is, about {format_bytes(before)}."
    return f"HBM peaks at about {format_bytes(after)} instead of {format_bytes(before)}."


def _alone(run: Run) -> str | None:
    """What one node alone would take for the same work of each device, where data parallelism crosses the nodes."""
    from asap.prediction import predict

    nodes, plan, batch = run.hardware.domains, run.plan, run.workload.global_batch
    crossing: tuple[Axis, ...] = ("replica", "data")
    axis: Axis | None = next((axis for axis in crossing if plan.degree(axis) % nodes == 0), None)
    if axis is None or not batch or batch % nodes or plan.dcn.devices > 1:
        return None
    small = plan.model_copy(update={"ici": plan.ici.model_copy(update={axis: plan.degree(axis) // nodes})})
    hardware = replace(run.hardware, chips_per_slice=run.hardware.chips // nodes, slices=1)
    try:
        workload = run.workload.model_copy(update={"global_batch": batch // nodes})
        alone = predict(small, run.model, workload, hardware)[0].step_time
    except AsapError:
        return None
    if alone is None:
        return None
    return f"One node alone, with the same work for each device, takes about {format_seconds(alone.value)} a step."


def _parts(run: Run) -> str:
    return "slices" if run.hardware.chip.kind == "tpu" else "nodes"


def check_of(name: CauseName, run: Run) -> str:
    """What tells whether it is so."""
    gpu = run.hardware.chip.kind == "gpu"
    if name == "network" and gpu:
        return (
            "NCCL_DEBUG=INFO (NET/IB or the cloud's plugin is the fast path, NET/Socket is not), all_reduce_perf of"
            " nccl-tests over two nodes, and one node against two"
        )
    if name == "slow device" and gpu:
        return "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE on every node; the run without its slowest node"
    return _CHECKS[name]


_CHECKS: dict[CauseName, str] = {
    "network": "one slice against two, and the DCN collectives of a profile",
    "slow device": "a profile of every host: which one the others wait for",
    "input": "the same run on random data",
    "interruptions": "the times of single steps, and a run without checkpoints and evaluation",
    "sequence": "tokens of a step as the log counts them",
    "batch": "tokens of a step as the log counts them, and gradient accumulation",
    "precision": "the data types of matrix products in a profile",
    "attention": "the names of the attention kernels in a profile",
    "recomputation": "the forward operations inside of the backward pass of a profile",
    "flags": "LIBTPU_INIT_ARGS and XLA_FLAGS of the run beside those that are proposed",
    "debugging": "the environment of the run, and a profile of one step",
    "counting": "how the log counts steps and seconds",
    "experts": "a profile of one step, and the run with grouped matrix products (Megatron Core, or Transformers 5)",
}
