"""torchtitan's settings in a registry in Python, and what it needs beside them."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import degree
from asap.stacks.torchtitan.settings import EXPERT, REMAT, REMAT_OPTION
from asap.stacks.torchtitan.stages import PIPELINE, TOKENS

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


_NO_GRAPHS = "training.disable_cuda_graphs"
ATTENTION = "model.attn_backend"
_NAME, _VARLEN = "model.name", "varlen"
_WITH_VARLEN = ("gpt_oss",)
"""Models whose attention it is by default."""


def required(changed: Mapping[str, str], current: Mapping[str, object]) -> dict[str, str]:
    """Settings that others need: CUDA graphs, on by default since August 2026, take neither stages nor most experts.

    Args:
        changed: settings that change for a plan.
        current: the settings as they are; experts that they lay out go with graphs if graphs are on.
    """
    if TOKENS not in current or str(current.get(_NO_GRAPHS)).casefold() == "true":
        return {}
    new = {**current, **changed}
    experts = degree(new, EXPERT) > 1 == degree(current, EXPERT)
    return {_NO_GRAPHS: "true"} if degree(new, PIPELINE) > 1 or experts else {}


def attention_backend(current: Mapping[str, object]) -> object:
    """How a configuration of August 2026 computes attention; ``None`` of an earlier one, which had other ways."""
    default = _VARLEN if current.get(_NAME) in _WITH_VARLEN else "flex"
    return current.get(ATTENTION, default) if TOKENS in current else None
