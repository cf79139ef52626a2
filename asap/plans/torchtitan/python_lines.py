"""Settings as statements of a function that makes a configuration (``torchtitan/config/README.md``, August 2026)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.torchtitan.settings import REMAT, REMAT_OPTION

PYTHON = "configured_in_python"
"""Among a run's settings: its configuration is a Python function, not TOML."""
WITH_MODES = "with modes"
"""Its value where what is recomputed is said by a mode, as in TOML (``ActivationCheckpointConfig``, until 2026)."""
_CONFIG = "config."
_RECOMPUTATION = "activation_checkpoint"
_CLASSES = {"full": "FullAC.Config()", "selective": "SelectiveAC.Config()", "none": "None"}


def python_lines(settings: Mapping[str, str], form: object = True) -> str:
    """``config.parallelism.tensor_parallel_degree = 4``, one a line.

    Args:
        settings: by dotted key.
        form: the value of ``PYTHON`` among the settings as they are.
    """
    statements = map(_plain, settings.items()) if form == WITH_MODES else map(_statement, _without_option(settings))
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


def _without_option(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in settings.items() if key != REMAT_OPTION]


def _statement(setting: tuple[str, str]) -> tuple[str, str]:
    key, value = setting
    return (_RECOMPUTATION, _CLASSES[value]) if key == REMAT else _plain(setting)


def _plain(setting: tuple[str, str]) -> tuple[str, str]:
    key, value = setting
    if value in ("true", "false"):
        return key, value.capitalize()
    return key, value if value.lstrip("-").isdecimal() else f'"{value}"'
