"""From sums over devices and a window to one device and one step."""

from dataclasses import dataclass

from asap.profiles.profile import Extent
from asap.profiles.steps import Steps

US = 1e-6


@dataclass(frozen=True)
class Scale:
    """What sums are divided by.

    Args:
        devices: that the sums run over.
        window_s: of one device, idle time included; ``None`` is unknown, and then there must be steps.
        steps: that were marked; without them everything is per window.
    """

    devices: int
    window_s: float | None
    marked: Steps | None = None

    @property
    def extent(self) -> Extent:
        """What times are per."""
        return "step" if self.marked else "window"

    @property
    def steps(self) -> float:
        """Steps in the window: those that were marked, or as many as fit where the window has cut some off."""
        if self.marked is None:
            return 1.0
        fitting = (self.window_s or self.marked.count * self.marked.mean) / self.marked.mean
        return self.marked.count if abs(fitting - self.marked.count) < 0.5 else fitting

    def each(self, total: float) -> float:
        """Of a sum over all, the part of one device and step (or window)."""
        return total / self.devices / self.steps

    def fraction(self, total_s: float) -> float:
        """Share of the step (or window) that a sum of times makes up."""
        whole_s = self.marked.mean if self.marked else self.window_s
        return self.each(total_s) / whole_s if whole_s else 0.0
