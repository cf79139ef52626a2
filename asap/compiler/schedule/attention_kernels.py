"""Time of attention kernels, for which the compiler has none: the slower of the MXU and the VPU.

The MXU works on whole tiles, so a head narrower than a tile costs as much as a full one. The VPU takes the same time
for each score whatever the head dimension: the softmax with its running maximum.

Both rates are from one MaxText run of Qwen3-8B on v6e-8 whose profile was published: a call for three sequences of 8192
with 32 heads of 128 in blocks of 2048 took 9.41 ms forward, where the VPU is slower, and 13.87 ms
backward, its five matmuls in one kernel (github.com/vlasenkoalexey/tpu_performance_autoresearch_wiki, 6dbda52d60,
experiment 2026-06-02-maxtext-qwen3-8b-v6e8-ref-seq8192).
"""

import math
import re

from asap.compiler.schedule.device_rates import DeviceRates
from asap.compiler.schedule.hlo import Instruction, Shape, shapes

_MATMULS = {"fwd": 2, "dq": 3, "dkv": 4}
"""Matmuls of the splash kernels: scores and context; scores, their gradient and that of the queries; scores,
their gradient, and those of keys and values. Fused, the last kernel gives the gradient of the queries as well."""

_EFFICIENCY = 0.81
"""Share of the MXU's peak reached in the blocks that are not masked."""

_SOFTMAX_CYCLES = 4.1e-3
"""Cycles of one core for each score, forward: 9.41 ms at 1.75 GHz for 4.03e9 scores."""

_BLOCK = re.compile(r"block_q\\+\": (\d+)")


def attention_kernel_seconds(instruction: Instruction, rates: DeviceRates) -> float | None:
    """Time of an attention kernel; ``None`` for an unknown kernel."""
    found = re.match(r"splash_m[hq]a_(fwd|dq|dkv)", instruction.name)
    layouts = re.search(r"operand_layout_constraints=\{(.*?\})\}", instruction.attributes)
    if found is None or layouts is None:
        return None
    arrays = [s for s in shapes(layouts.group(1)) if len(s.dims) >= 3 and s.dtype in ("bf16", "f32", "f16")]
    if len(arrays) < 2:
        return None
    *batch, queries, width = arrays[0].dims
    keys = arrays[1].dims[-2]
    tile = rates.matmul_tile
    padded = math.ceil(width / tile) * tile
    part = found.group(1)
    scores = math.prod(batch) * queries * keys * _unmasked_share(instruction, keys)
    matmuls = 2 * scores * padded * _matmul_count(instruction, part, arrays[0]) / (_EFFICIENCY * rates.peak_flops)
    softmax = scores * _SOFTMAX_CYCLES / (rates.cores * rates.clock) if part == "fwd" else 0.0
    return max(matmuls, softmax)


def _matmul_count(instruction: Instruction, part: str, queries: Shape) -> int:
    """Matmuls of a kernel. Its results are as large as the queries; what is smaller is scratch space."""
    results = [shape for shape in instruction.shapes if len(shape.dims) >= len(queries.dims)]
    return _MATMULS[part] + (part == "dkv" and len(results) > 2)


def _unmasked_share(instruction: Instruction, keys: int) -> float:
    """Share of the blocks that the causal mask leaves, averaged over the devices of a sequence axis."""
    found = _BLOCK.search(instruction.attributes)
    blocks = keys / int(found.group(1)) if found else keys
    return (blocks + 1) / (2 * blocks)
