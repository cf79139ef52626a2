"""The units in which engineers write figures: what each measures, and how much of it one is."""

import re

SECOND = "s"
SHARE = "share"
RATIO = "ratio"
COUNT = "count"

_PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_LONG_PREFIXES = {"kilo": 1, "mega": 2, "giga": 3, "tera": 4}
_TIMES = {
    SECOND: 1.0,
    "sec": 1.0,
    "second": 1.0,
    "ms": 1e-3,
    "millisecond": 1e-3,
    "µs": 1e-6,
    "μs": 1e-6,
    "us": 1e-6,
    "microsecond": 1e-6,
    "ns": 1e-9,
    "nanosecond": 1e-9,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "day": 86400.0,
}
_COUNTED = (
    "device chip core node host slice token sequence sample layer head expert stage parameter axis microbatch doubling"
)
_RATIOS = ("x", "×", "times", "fold", "multiples")
_SHARES = ("%", "percent", "per cent", "pct", "percentage point", "percentage points", "pp", "points", "point")

UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(_SHARES, (SHARE, 0.01)),
    "‰": (SHARE, 0.001),
    **dict.fromkeys(_RATIOS, (RATIO, 1.0)),
    **{unit: (SECOND, scale) for unit, scale in _TIMES.items()},
    **{f"{unit}s": (SECOND, scale) for unit, scale in _TIMES.items() if len(unit) > 2},
    **dict.fromkeys([f"{name}{plural}" for name in _COUNTED.split() for plural in ("", "s")], (COUNT, 1.0)),
    **dict.fromkeys(("axes", "microbatches"), (COUNT, 1.0)),
    **{f"tokens/{per}": ("tokens/s", 1.0) for per in ("s", "sec", "second")},
    **{f"{p}iB": ("bytes", 1024.0**n) for p, n in _PREFIXES.items() if n},
    **{f"{p}B": ("bytes", 1000.0**n) for p, n in _PREFIXES.items()},
    **{f"{p}bytes": ("bytes", 1000.0**n) for p, n in _LONG_PREFIXES.items()},
    "bytes": ("bytes", 1.0),
    "byte": ("bytes", 1.0),
    **{f"{p}iB/s": ("bytes/s", 1024.0**n) for p, n in _PREFIXES.items() if n},
    **{f"{p}B{per}": ("bytes/s", 1000.0**n) for p, n in _PREFIXES.items() for per in ("/s", "ps")},
    **{f"{p}{bit}": ("bytes/s", 1000.0**n / 8) for p, n in _PREFIXES.items() if n for bit in ("b/s", "bps", "bit/s")},
    **{f"{p}FLOP{form}": ("FLOP", 1000.0**n) for p, n in _PREFIXES.items() for form in ("", "s")},
    **{f"{p}FLOP{form}": ("FLOP/s", 1000.0**n) for p, n in _PREFIXES.items() for form in ("/s", "s/s", "S")},
}
"""What a unit measures and its size in the base unit of that."""

MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}

_FOLDED = {unit.casefold(): measure for unit, measure in UNITS.items() if len(unit) > 1}
_PER = re.compile(r"/(?:step|device|chip|core|layer|token|iteration|host|node|gpu|tpu|byte|b)s?$", re.IGNORECASE)


def measure(unit: str) -> tuple[str, float] | None:
    """What a unit measures and its size; `ms/step` measures what `ms` does. ``None`` if it is no unit."""
    found = UNITS.get(unit) or _FOLDED.get(unit.casefold())
    if found is None and _PER.search(unit):
        return measure(_PER.sub("", unit))
    return found
