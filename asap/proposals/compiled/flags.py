"""Missing flags, tried by the TPU compiler on the plan that runs: what they change of HBM and collectives."""

from collections.abc import Callable, Sequence

from asap.compiler.verification import Verification
from asap.core.units import format_bytes, format_seconds
from asap.flags.environment import FLAG_VARIABLES
from asap.study.flags import flags_of
from asap.study.study import Study

VerifyFlags = Callable[[Sequence[str]], Verification]
"""Compiles the plan that runs, with flags on top of its own."""
_WITH_MEMORY = ("compiled", "does_not_fit")
"""Outcomes that say how much HBM the program needs."""


def missing_compiler_flags(study: Study) -> tuple[str, ...]:
    """Words of the flags that the run misses and the TPU compiler reads."""
    missing = [advice for advice in flags_of(study).missing if advice.variable == FLAG_VARIABLES[0]]
    return tuple(f"--{name}={value}" for advice in missing for name, value in advice.flags.items())


def try_missing_flags(study: Study, verify: VerifyFlags) -> str | None:
    """What the compiler makes of the missing flags, in one sentence; ``None`` where none is missing."""
    words = missing_compiler_flags(study)
    if study.plan is None or not words:
        return None
    without, with_them = verify(()), verify(words)
    for found in (without, with_them):
        if found.status not in _WITH_MEMORY:
            return f"The missing flags were not compared: {found.verdict}"
    changes = [
        f"{name} {after} instead of {before}" if before != after else f"the same {name} ({before})"
        for name, before, after in (
            ("HBM", _hbm(without), _hbm(with_them)),
            ("exposed collectives", _exposed(without), _exposed(with_them)),
        )
        if before and after
    ]
    return f"With the missing flags the compiler's program has {' and '.join(changes)}." if changes else None


def _hbm(found: Verification) -> str:
    size = found.memory.hbm_peak if found.memory else found.needed_bytes
    return format_bytes(size) if size else ""


def _exposed(found: Verification) -> str:
    """Seconds of collectives that nothing hides."""
    exposed = [row.exposed_s for row in found.collectives if row.exposed_s is not None]
    return format_seconds(sum(exposed)) if exposed else ""
