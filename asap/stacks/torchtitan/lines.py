"""torchtitan's settings in a registry in Python, and what it refuses or needs beside them."""

from collections.abc import Iterator, Mapping

from asap.core.errors import PlanError
from asap.plans.axes import Axis
from asap.plans.degrees import degree
from asap.plans.plan import Plan
from asap.plans.remat import RecomputedLayers
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


_BACKEND, _FLAVOR = "parallelism.spmd_backend", "model.flavor"
_NO_GRAPHS = "training.disable_cuda_graphs"
ATTENTION = "model.attn_backend"
_NAME, _VARLEN = "model.name", "varlen"
_WITH_VARLEN = ("gpt_oss",)
"""Models whose attention it is by default."""
_LACKING: Mapping[str, tuple[tuple[str, ...], Axis]] = {
    "pipeline": (("qwen3", "gpt_oss"), "stage"),
    "context parallelism": (("deepseek_v3", "llama4", "gpt_oss"), "seq"),
}
"""What models did not have until February 2026 (``models/*/__init__.py``)."""


def refused(plan: Plan, current: Mapping[str, object]) -> Iterator[str]:
    """What torchtitan refuses beside the settings on record: replicas without FSDP beside tensor parallelism or stages
    (``parallelize_llama`` and its like, until March 2026); context parallelism by DTensor, which is gone since August,
    or of attention that has none; what a model did not have in TOML's days; recomputation of some layers, which its
    Python of today does not have."""
    if isinstance(plan.remat, RecomputedLayers) and PYTHON in current:
        yield "configured in Python it recomputes all layers, none, or operations of each"
    sharded = plan.degree("data") * plan.degree("expert") * plan.degree("seq")
    others = plan.degree("model") * plan.degree("stage")
    if _is_of_2025(current):
        for what, (models, axis) in _LACKING.items():
            if str(current.get(_NAME)) in models and plan.degree(axis) > 1:
                yield f"until February 2026 it has no {what} for {current.get(_NAME)}"
        if plan.degree("replica") > 1 == sharded and others > 1:
            yield "until March 2026 it has replicas beside tensor parallelism or stages with FSDP only"
    if plan.degree("seq") > 1 and current.get(_BACKEND) == "partial_dtensor":
        yield f'context parallelism needs another backend, {_BACKEND} = "spmd_types"'
    if plan.degree("seq") > 1 and attention_backend(current) == _VARLEN:
        yield f"it has no context parallelism of {_VARLEN} attention, but with {ATTENTION}=flex"


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


def _is_of_2025(current: Mapping[str, object]) -> bool:
    """Whether a configuration is TOML, which names its model and which torchtitan read until February 2026."""
    return _FLAVOR in current and not {PYTHON, TOKENS} & current.keys()
