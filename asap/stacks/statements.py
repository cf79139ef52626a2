"""Lines that a configuration in Python takes, one assignment each, and the flags that say the same."""

from collections.abc import Mapping

from asap.core.errors import PlanError

CONFIG = "config."
"""How each begins."""


def is_python(text: str) -> bool:
    """Whether a line to paste is such statements."""
    return text.startswith(CONFIG)


def read_lines(text: str) -> dict[str, str]:
    """Values by dotted key, as the statements write them."""
    pairs = (line.removeprefix(CONFIG).partition(" = ") for line in text.splitlines())
    return {key: value.strip('"') for key, _, value in pairs}


def plain_values(text: str) -> dict[str, str]:
    """The same without Python, as a file or a command line says them.

    Raises:
        PlanError: a whole section is among them, which is a class.
    """
    said = read_lines(text)
    if section := next((key for key in said if "." not in key), None):
        raise PlanError("this section is a class in Python, which no flag says", where=section)
    return said


def flags(settings: Mapping[str, str]) -> list[str]:
    """Settings as flags of a command line where a switch has no value: ``--training.no_enable_cpu_offload``."""
    return [_flag(key, value) for key, value in settings.items()]


def _flag(key: str, value: str) -> str:
    section, dot, name = key.rpartition(".")
    switches = {"true": f"--{key}", "false": f"--{section}{dot}no_{name}"}
    return switches.get(value.casefold(), f"--{key}={value}")
