"""The flags in an environment: variables that hold flags, and variables that are settings themselves."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from asap.core.text import plain
from asap.flags.document import FlagAdvice, shown
from asap.flags.table import flag_tables

FLAG_VARIABLES = ("LIBTPU_INIT_ARGS", "XLA_FLAGS")
SETTING = "compile_xla_flags"
"""MaxText's setting for flags of the TPU compiler."""
_FLAG = re.compile(r"--?(?P<name>[A-Za-z]\w*)(?:=(?P<value>.*))?", re.ASCII | re.DOTALL)
_PREFIXES = ("CUDA_", "NCCL_", "NVTE_", "TORCH_", "PYTORCH_", "XLA_PYTHON_")
_TRUE, _FALSE = {"true", "1", "enabled", "kenabled", "on"}, {"false", "0", "disabled", "kdisabled", "off"}


@dataclass(frozen=True)
class GivenFlag:
    """A flag as a run sets it; ``variable`` is empty for a variable of its own."""

    name: str
    value: str
    variable: str = ""


def is_performance_variable(name: str) -> bool:
    """Whether a variable of a launch script belongs on record: it holds flags, or is one."""
    return name in FLAG_VARIABLES or name.startswith(_PREFIXES) or name in _own_variables()


def flags_in(environment: Mapping[str, str]) -> tuple[GivenFlag, ...]:
    """Every flag in the order in which it is given; the last of a name counts."""
    found: list[GivenFlag] = []
    for variable, text in environment.items():
        if variable in FLAG_VARIABLES or variable == SETTING:
            holder = FLAG_VARIABLES[0] if variable == SETTING else variable
            found += [GivenFlag(name, value, holder) for name, value in parse_flags(text)]
        elif is_performance_variable(variable):
            found.append(GivenFlag(variable, text))
    return tuple(found)


def parse_flags(text: str) -> tuple[tuple[str, str], ...]:
    """``--a=1 --b`` → ``(("a", "1"), ("b", "true"))``; what is no flag is left out."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    flags = filter(None, map(_FLAG.fullmatch, words))
    return tuple((flag["name"], "true" if flag["value"] is None else flag["value"]) for flag in flags)


def same_value(one: str, other: str) -> bool:
    """Whether two values mean the same: ``true``, ``1`` and ``ENABLED`` do."""
    return _meaning(one) == _meaning(other)


def _meaning(value: str) -> str:
    folded = value.strip().casefold()
    return "true" if folded in _TRUE else "false" if folded in _FALSE else folded


_OFF = {"", "none", "null", *_FALSE}


def is_any_set(patterns: Iterable[str], settings: Mapping[str, object], environment: Mapping[str, str]) -> bool:
    """Whether settings, flags or variables match a pattern of key or key=value; a key alone unless it is off.

    A key matches with or without the sections that it stands in.
    """
    given = [(key, str(value)) for key, value in settings.items()]
    given += [(flag.name, flag.value) for flag in flags_in(environment)]

    def matches(pattern: str, key: str, value: str) -> bool:
        name, equal, wanted = pattern.partition("=")
        fits = fnmatchcase(key, name) or fnmatchcase(key, f"*.{name}")
        return fits and (fnmatchcase(value, wanted) if equal else value not in _OFF)

    said = [(key.replace("-", "_").lower(), value.strip().lower()) for key, value in given]
    return any(matches(pattern, *one) for pattern in patterns for one in said)


def _own_variables() -> frozenset[str]:
    return frozenset(name for table in flag_tables() if not table.variable for name in table.purposes)


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
