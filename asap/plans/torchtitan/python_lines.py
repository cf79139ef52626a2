"""Settings as statements of a function that makes a configuration (``torchtitan/config/README.md``, August 2026)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.torchtitan.settings import REMAT, REMAT_OPTION

PYTHON = "configured_in_python"
"""Among a run's settings: its configuration is a Python function, not TOML."""
_CONFIG = "config."
_RECOMPUTATION = "activation_checkpoint"
_CLASSES = {"full": "FullAC.Config()", "selective": "SelectiveAC.Config()", "none": "None"}


def python_lines(settings: Mapping[str, str]) -> str:
    """``config.parallelism.tensor_parallel_degree = 4``, one a line."""
    return "\n".join(f"{_CONFIG}{key} = {value}" for key, value in map(_statement, _without_option(settings)))


def is_python(text: str) -> bool:
    """Whether a line to paste is such statements."""
    return text.startswith(_CONFIG)


def read_lines(text: str) -> dict[str, str]:
    """Values by dotted key, as the statements write them."""
    pairs = (line.removeprefix(_CONFIG).partition(" = ") for line in text.splitlines())
    return {key: value.strip('"') for key, _, value in pairs}


def flags(text: str) -> dict[str, str]:
    """The same as flags of its command line, which has none for what is recomputed.

    Raises:
        PlanError: recomputation is among them.
    """
    said = read_lines(text)
    if _RECOMPUTATION in said:
        raise PlanError("what torchtitan recomputes is a class in its Python, which no flag says", where=_RECOMPUTATION)
    return said


def _without_option(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in settings.items() if key != REMAT_OPTION]


def _statement(setting: tuple[str, str]) -> tuple[str, str]:
    key, value = setting
    if key == REMAT:
        return _RECOMPUTATION, _CLASSES[value]
    if value in ("true", "false"):
        return key, value.capitalize()
    return key, value if value.lstrip("-").isdecimal() else f'"{value}"'
