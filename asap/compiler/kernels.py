"""Time of hand-written kernels, to which the compiler gives none: FLOPs over the share of the peak that they reach.

The matrix unit works on whole tiles, so a head narrower than a tile costs as much as a full one.
"""

import math
import re

from asap.compiler.hlo import Instruction, shapes
from asap.compiler.rates import Rates

_PRODUCTS = {"fwd": 2, "dq": 3, "dkv": 4}
"""Matrix products of the splash kernels: scores and context; scores, their gradient and that of the queries; scores,
their gradient, and those of keys and values."""

_REACHED = {"fwd": 0.48, "dq": 0.81, "dkv": 0.81}
"""Share of the peak, in the blocks that are looked at. From a MaxText run of Qwen3-8B on v6e-8, profiled: a call for
three sequences of 8192 with 32 heads of 128 in blocks of 2048 took 9.41 ms forward and 13.87 ms backward, its five
products in one kernel (github.com/vlasenkoalexey/tpu_performance_autoresearch_wiki, 6dbda52d60, experiment
2026-06-02-maxtext-qwen3-8b-v6e8-ref-seq8192)."""

_BLOCK = re.compile(r"block_q\\+\": (\d+)")


def kernel_seconds(instruction: Instruction, rates: Rates) -> float | None:
    """Time of an attention kernel; ``None`` for a kernel that is not known."""
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
    flops = 2 * math.prod(batch) * queries * keys * padded * _PRODUCTS[part] * _seen(instruction, keys)
    return flops / (_REACHED[part] * rates.peak_flops)


def _seen(instruction: Instruction, keys: int) -> float:
    """Share of the blocks that causal attention looks at, averaged over the devices of a sequence axis."""
    found = _BLOCK.search(instruction.attributes)
    blocks = keys / int(found.group(1)) if found else keys
    return (blocks + 1) / (2 * blocks)
