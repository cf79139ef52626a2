"""How fast a GPU's fused attention is, beside a kernel that was written for its generation of chips."""

import re

from asap.hardware import Chip
from asap.models import Workload
from asap.prediction.step_model.groups import generation, has_kernel_of_the_chip, kernel_of

FIRST_FLASH = 0.5
"""Rate of FlashAttention over that of FlashAttention-2, "around 2× speedup" (arXiv:2307.08691, abstract)."""
FLEX_ON_BLACKWELL = 0.45
"""Rate of FlexAttention in Triton over that of FlashAttention-4, which takes 1.6 to 3.2 times less time forward and
1.85 to 2.3 times less backward (PyTorch, "FlexAttention + FlashAttention-4: Fast and Flexible", 2026)."""
_BLACKWELL = ("b200", "b300")
_SECOND = r"(flash.?att(entio)?n|flash|\bfa).?2"


def attention_rate(workload: Workload, chip: Chip) -> float:
    """Share of the rate of a fused kernel of today."""
    kernel = FIRST_FLASH if kernel_of(workload, chip.kind) == "flash-1" else 1.0
    if generation(chip.name) in _BLACKWELL:
        return kernel * _rate_on_blackwell(workload, chip)
    ported = not has_kernel_of_the_chip(workload.attention, workload.framework)
    return kernel * (chip.ported_attention if ported else 1.0)


def _rate_on_blackwell(workload: Workload, chip: Chip) -> float:
    """There PyTorch's own attention calls cuDNN (``check_prefer_cudnn_attention`` in its ``sdp_utils.cpp``), so that
    FlashAttention-2 has to be said, or ``varlen``, which calls it (``torch.nn.attention.varlen``)."""
    said = (workload.attention or "").casefold()
    of_the_chip = has_kernel_of_the_chip(workload.attention, workload.framework)
    if re.search(_SECOND, said) or ("varlen" in said and not of_the_chip):
        return chip.ported_attention
    return FLEX_ON_BLACKWELL if "flex" in said and not of_the_chip else 1.0
