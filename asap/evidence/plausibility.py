"""Whether hardware can have taken so short a step: the MFU that a step time amounts to, beside published ones."""

import re

from asap.evidence.anchor import modelled_now
from asap.study.study import Study

SAYS_MFU = re.compile(r"\b(?:mfu|utili[sz]ation)\b", re.I)
HIGHEST_PUBLISHED_MFU = 0.69
"""Of all runs in tests/data/measurements: MaxText on v5p, by the FLOPs of PaLM (arXiv:2204.02311, appendix B)."""
IMPLAUSIBLE_MFU = 0.75
"""Above it a figure is asked about: a little more than was ever published."""
MOST_MFU = 0.8
"""Above it a measured step can only be a mistake of units or counting."""


def mfu_of_rate(study: Study, flops_per_second: float) -> float | None:
    """The MFU of so many FLOP/s of a chip, at the peak of its bf16; ``None`` where the hardware is not known."""
    peak = study.slice.chip.peak_flops.get("bf16") if study.slice else None
    return flops_per_second / peak if peak else None


def mfu_of_step(study: Study, seconds: float) -> float | None:
    """The MFU of a step of the run's model and batch on its hardware; ``None`` without the architecture."""
    now = modelled_now(study)
    if now is None or now.mfu is None or now.step_time is None:
        return None
    return now.mfu.value * now.step_time.value / seconds
