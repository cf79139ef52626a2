"""Mistakes that need no table: flags in the wrong variable, and flags that contradict each other."""

from collections.abc import Iterable

from asap.core.text import plain
from asap.flags.document import FlagAdvice, shown
from asap.flags.environment import GivenFlag, same_value

_READERS = (
    ("LIBTPU_INIT_ARGS", "xla_gpu_", "libtpu", "XLA_FLAGS"),
    ("XLA_FLAGS", "xla_tpu_", "jaxlib", "LIBTPU_INIT_ARGS"),
)
"""Variable, the flags that its reader refuses, the reader, and the variable where they belong (jaxlib 0.10.2 and
libtpu 0.0.42 end with "Unknown flag")."""


def misplaced(given: Iterable[GivenFlag]) -> Iterable[FlagAdvice]:
    """Flags in the wrong variable."""
    for variable, foreign, reader, right in _READERS:
        found = {flag.name: flag.value for flag in given if flag.variable == variable and flag.name.startswith(foreign)}
        if found:
            yield FlagAdvice(
                kind="harmful",
                title=f"{foreign}* in {variable}",
                flags=shown(found),
                variable=variable,
                reason=f"{reader} does not start with a flag that it does not know; these belong into {right}",
                source="https://docs.jax.dev/en/latest/xla_flags.html",
            )


def contradictions(given: Iterable[GivenFlag]) -> Iterable[FlagAdvice]:
    """Flags that are given twice, with different values."""
    first: dict[str, GivenFlag] = {}
    for flag in given:
        before = first.setdefault(flag.name, flag)
        if not same_value(before.value, flag.value):
            first[flag.name] = flag
            yield FlagAdvice(
                kind="contradictory",
                title=f"{plain(flag.name, 120)} is set twice",
                flags=shown({flag.name: flag.value}),
                variable=flag.variable,
                reason=f"to {plain(before.value, 40)} and to {plain(flag.value, 40)}: the last one counts",
                source="https://abseil.io/docs/python/guides/flags",
            )
