"""Time and category of one instruction that is not a collective."""

from asap.compiler.schedule.attention_kernels import attention_kernel_seconds
from asap.compiler.schedule.device_rates import DeviceRates
from asap.compiler.schedule.hlo import Computation, Instruction, Module
from asap.compiler.schedule.matmul_flops import matmul_flops
from asap.compiler.schedule.memory_traffic import bytes_accessed

_MOVES = ("copy", "slice", "dynamic-slice", "dynamic-update-slice", "transpose", "reshape", "broadcast", "pad")


def operation_seconds(
    module: Module, instruction: Instruction, computation: Computation, rates: DeviceRates
) -> tuple[float, bool]:
    """Seconds, and whether they are known: of an unknown kernel only the bytes are."""
    kernel = instruction.opcode == "custom-call"
    seconds = attention_kernel_seconds(instruction, rates) if kernel else None
    if seconds is not None:
        return seconds, True
    matmul = rates.matmul_seconds(matmul_flops(module, instruction, computation))
    memory = rates.memory_seconds(bytes_accessed(module, instruction, computation))
    return max(matmul, memory), not kernel


def operation_category(module: Module, instruction: Instruction) -> str:
    """Category under which an instruction is counted."""
    if instruction.opcode == "custom-call":
        return "kernels"
    inside = {inner.opcode for inner in module.inside(instruction)} | {instruction.opcode}
    if inside & {"convolution", "dot"}:
        return "matmuls"
    if inside & {"gather", "scatter", "sort"}:
        return "gathers and scatters"
    active = inside - {"fusion", "parameter", "constant", "bitcast"}
    return "data movement" if active and active <= set(_MOVES) else "elementwise"
