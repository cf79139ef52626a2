"""torchtitan's settings in a registry in Python."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.stacks.torchtitan.settings import REMAT, REMAT_OPTION

PYTHON = "configured_in_python"
"""Among a run's settings: its configuration is a Python function, not TOML."""
_CONFIG = "config."
_RECOMPUTATION = "activation_checkpoint"
_CLASSES = {"full": "FullAC.Config()", "selective": "SelectiveAC.Config()", "none": "None"}


def python_lines(settings: Mapping[str, str]) -> str:
    """``config.parallelism.tensor_parallel_degree = 4``, one a line."""
    statements = (_statement(key, value) for key, value in settings.items() if key != REMAT_OPTION)
    return "\n".join(f"{_CONFIG}{key} = {value}" for key, value in statements)


def is_python(text: str) -> bool:
    """Whether a line to paste is such statements."""
    return text.startswith(_CONFIG)


def read_lines(text: str) -> dict[str, str]:
    """Values by dotted key, as the statements write them."""
    pairs = (line.removeprefix(_CONFIG).partition(" = ") for line in text.splitlines())
    return {key: value.strip('"') for key, _, value in pairs}


def plain_values(text: str) -> dict[str, str]:
    """The same without Python, as a file or a command line says them.

    Raises:
        PlanError: recomputation is among them, which is a class.
    """
    said = read_lines(text)
    if _RECOMPUTATION in said:
        raise PlanError("what torchtitan recomputes is a class in its Python, which no flag says", where=_RECOMPUTATION)
    return said


def flags(settings: Mapping[str, str]) -> list[str]:
    """Settings as flags of its command line, where a switch has no value: ``--training.no_enable_cpu_offload``."""
    return [_flag(key, value) for key, value in settings.items()]


def _flag(key: str, value: str) -> str:
    section, dot, name = key.rpartition(".")
    switches = {"true": f"--{key}", "false": f"--{section}{dot}no_{name}"}
    return switches.get(value.casefold(), f"--{key}={value}")


def _statement(key: str, value: str) -> tuple[str, str]:
    if key == REMAT:
        return _RECOMPUTATION, _CLASSES[value]
    if value in ("true", "false"):
        return key, value.capitalize()
    return key, value if value[:1] == "[" or value.lstrip("-").isdecimal() else f'"{value}"'
