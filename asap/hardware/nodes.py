"""GPUs of a node: as many as the maker's own machine has, or fewer."""

from asap.hardware.chip import Chip
from asap.hardware.slices import Slice

LARGEST_NODE = 16
"""GPUs of the largest server. What the fast links of a chip join beyond it is a rack, of which a server is a part."""


def chips_per_node(chip: Chip) -> int | None:
    """Chips of a server; ``None`` where chips reach each other beyond it, or it is not on record."""
    return chip.scaleup.domain if chip.scaleup and chip.scaleup.domain <= LARGEST_NODE else None


def with_node(hardware: Slice, gpus: int) -> Slice:
    """The same GPUs in nodes of so many: their fast links join no more; the same where a node holds as many anyway."""
    chip = hardware.chip
    usual = chips_per_node(chip)
    if usual is None or chip.scaleup is None or gpus >= usual:
        return hardware
    smaller = chip.model_copy(update={"scaleup": chip.scaleup.model_copy(update={"domain": gpus})})
    return Slice(smaller, hardware.chips_per_slice, hardware.topology, hardware.slices)
