"""How far a measurement lies outside of what was expected of it."""

import math

from asap.core.provenance import Quantity

REACH = 2.326 / 1.645
"""Half-width of a 98 % interval over that of a 90 % interval, of a normal distribution. One measurement in ten lies
outside of the 90 % interval by chance alone, one in fifty outside of this one."""


def excess(measured: float, expected: Quantity) -> float:
    """``ln(measured / expected)``."""
    return math.log(measured / expected.value)


def half_width(expected: Quantity) -> float:
    """Of the 90 % interval, on a logarithmic scale; 0 where there is none."""
    if not expected.low or not expected.high:
        return 0.0
    return math.log(expected.high / expected.low) / 2


def is_outside(measured: float, expected: Quantity) -> bool:
    """Whether a measurement lies too far off to be of what was modelled: outside of its 98 % interval."""
    width = half_width(expected)
    return width > 0 and abs(excess(measured, expected)) > REACH * width
