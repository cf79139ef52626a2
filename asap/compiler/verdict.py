"""The verdict on a compilation, in one sentence."""

from asap.compiler.programs.outcome import CompileOutcome
from asap.compiler.schedule.device_rates import device_rates
from asap.core.units import format_bytes, format_seconds
from asap.hardware import Slice


def verdict(outcome: CompileOutcome, hardware: Slice) -> str:
    """One sentence."""
    memory = outcome.memory
    if outcome.status == "compiled" and memory is not None:
        device = format_bytes(device_rates(hardware.chip).hbm_bytes)
        used = f"{format_bytes(memory.hbm_peak)} of {device} HBM" if memory.hbm_peak else f"within {device} HBM"
        host = f", {format_bytes(memory.host)} in host memory" if memory.host else ""
        return f"compiles in {format_seconds(outcome.seconds)} and fits: {used}{host}"
    if outcome.status == "sharded":
        return (
            f"whether it fits is unknown: compiling for {hardware.chip.title} needs the chip itself."
            f" XLA's CPU pipeline shards it: {format_bytes(outcome.argument_bytes or 0)} of parameters, optimizer state"
            f" and batch on a device with {format_bytes(device_rates(hardware.chip).hbm_bytes)} HBM, before activations"
        )
    if outcome.status == "does_not_fit":
        if outcome.needed_bytes is None or outcome.available_bytes is None:
            return f"does not fit: {outcome.message}"
        return (
            f"does not fit: needs {format_bytes(outcome.needed_bytes)} of HBM,"
            f" {format_bytes(outcome.available_bytes)} is available"
        )
    reasons = {
        "not_expressible": "the training step cannot express the plan",
        "step_failed": "the training step raised",
        "refused": "the compiler rejects it",
        "crashed": "the compiler crashed",
        "timed_out": "the compiler did not finish in time",
        "out_of_host_memory": "the compiler exceeded the host memory limit",
    }
    return f"{reasons.get(outcome.status, outcome.status)}: {outcome.message}"
