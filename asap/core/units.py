"""Numbers with their provenance; seconds, bytes and rates for people. Internally everything is in SI units."""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from asap.core.numbers import LARGEST_COUNT

Count = Annotated[int, Field(gt=0, le=LARGEST_COUNT)]
"""A field that counts something."""

CountOrZero = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]

GIB = 2**30
HOUR = 3600.0
PERCENT = 100.0
FACTOR = 10.0
"""From this ratio on a change is written as a factor: judgement, a reader cannot place ``+9354 %``."""


def format_seconds(seconds: float) -> str:
    """``0.00251`` → ``2.51 ms``."""
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if abs(seconds) < limit:
            return f"{significant(seconds * scale)} {unit}"
    return f"{significant(seconds)} s"


def format_bytes(count: float) -> str:
    """Binary prefixes: ``2147483648`` → ``2 GiB``."""
    for scale, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(count) >= scale:
            return f"{significant(count / scale)} {unit}"
    return f"{count:.0f} B"


def format_rate(per_second: float, unit: str) -> str:
    """Decimal prefixes: ``9.18e14, "FLOP/s"`` → ``918 TFLOP/s``."""
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(per_second) >= scale:
            return f"{significant(per_second / scale)} {prefix}{unit}"
    return f"{significant(per_second)} {unit}"


def format_percent(fraction: float, digits: int = 1) -> str:
    """``0.865`` → ``86.5 %``; a non-zero share too small to print is ``<0.1 %``, never 0."""
    smallest = 10.0**-digits
    if 0 < abs(fraction) * PERCENT < smallest / 2:
        return f"<{smallest:.{digits}f} %"
    return f"{fraction * PERCENT:.{digits}f} %"


def format_odds(probability: float) -> str:
    """A probability without false precision: never 0 or 100 %."""
    least = 0.01
    if least <= probability <= 1 - least:
        return format_percent(probability, 0)
    return "<1 %" if probability < least else ">99 %"


def format_change(ratio: float, digits: int = 1) -> str:
    """A ratio as a change: ``0.83`` → ``-17.0 %``; from tenfold on as a factor: ``95.5`` → ``95.5 times``."""
    if ratio >= FACTOR:
        return f"{significant(ratio)} times"
    least = 0.5 * 10.0**-digits
    if 0 < ratio * PERCENT < least:
        return f"<{2 * least - PERCENT:.{digits}f} %"
    return f"{(ratio - 1) * PERCENT:+z.{digits}f} %"


def change_interval(ratio: float, low: float | None, high: float | None) -> str:
    """A ratio as a change with its 90 % interval, where it has one: ``-3.1 % (-45 to +70 %)``."""
    if low is None or high is None or low == high:
        return format_change(ratio)
    digits = int(format_change(low, 0) == format_change(high, 0))
    least, most = format_change(low, digits), format_change(high, digits)
    least = least.removesuffix(" %") if most.endswith(" %") else least
    return f"{format_change(ratio)} ({least} to {most})"


def counted(count: float, noun: str) -> str:
    """``3, "run"`` → ``3 runs``; ``2.5, "doubling"`` → ``2.5 doublings``."""
    return f"{exact(count)} {noun}{'' if count == 1 else 's'}"


def exact(count: float) -> str:
    """What is counted or stated, not rounded: ``8192.0`` → ``8,192``, ``2.5`` → ``2.5``; at most ten digits."""
    return f"{count:,.10g}"


def none_of(count: int, noun: str) -> str:
    """``3, "plan"`` → ``none of 3 plans is``; of one: ``the only plan is not``."""
    return f"none of {count:,} {noun}s is" if count > 1 else f"the only {noun} is not"


def best_of(count: int, noun: str) -> str:
    """``3, "plan"`` → ``the most promising of 3 plans``; of one: ``the only plan``."""
    return f"the most promising of {count:,} {noun}s" if count > 1 else f"the only {noun}"


def significant(value: float, digits: int = 3) -> str:
    """Round to significant digits without exponent: ``35656.45`` → ``35,700``, ``2.5165`` → ``2.52``."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}" if math.isfinite(value) else str(value)
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


CHANGE = "change"
"""Unit of a share by which something grows: -0.17 is 17 % less."""


class Provenance(StrEnum):
    """How a number came to be known."""

    MEASURED = "measured"
    COMPILED = "compiled"
    MODELLED = "modelled"
    PRECEDENT = "precedent"
    STATED = "stated"


class Quantity(BaseModel):
    """A value with its unit, its origin and, where there is one, its 90 % interval."""

    model_config = ConfigDict(frozen=True)

    value: float
    unit: str = Field(description="s, bytes, FLOP/s, bytes/s, fraction, tokens/s or 1")
    provenance: Provenance
    source: str = Field(description="the table, file, formula or record behind the value")
    low: float | None = Field(default=None, description="lower end of the 90 % interval")
    high: float | None = Field(default=None, description="upper end of the 90 % interval")

    def with_ends(self, changed: Callable[[float], float]) -> "Quantity":
        """Itself with its value and the ends of its interval changed."""
        known = {name: end for name in ("value", "low", "high") if (end := getattr(self, name)) is not None}
        return self.model_copy(update={name: changed(end) for name, end in known.items()})
