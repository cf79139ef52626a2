"""torchtitan's settings in a registry in Python, and what it refuses or needs beside them."""

from collections.abc import Mapping

from asap.core.errors import PlanError
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
_UNSTAGED, _UNSHARED = ("qwen3", "gpt_oss"), ("deepseek_v3", "llama4", "gpt_oss")
"""Models that had no pipeline, and no context parallelism, until February 2026 (``models/*/__init__.py``)."""


def check(plan: Plan, current: Mapping[str, object]) -> None:
    """Check a plan beside the settings as they are.

    Raises:
        PlanError: replicas without FSDP beside tensor parallelism or stages, which ``parallelize_llama`` and its like
            refused until March 2026; or context parallelism by DTensor, which is gone since August, or of attention
            that has none; or what a model did not have in TOML's days; or recomputation of some layers, which its
            Python of today does not have.
    """
    if isinstance(plan.remat, RecomputedLayers) and PYTHON in current:
        raise PlanError("torchtitan configured in Python recomputes all layers, none, or operations of each")
    if _is_of_2025(current):
        _check_model(plan, str(current.get(_NAME)))
    sharded = plan.degree("data") * plan.degree("expert") * plan.degree("seq")
    others = plan.degree("model") * plan.degree("stage")
    if _is_of_2025(current) and plan.degree("replica") > 1 == sharded and others > 1:
        reason = "torchtitan until March 2026 has replicas beside tensor parallelism or stages with FSDP only"
        raise PlanError(reason, hint="shard over 2 devices or more")
    if plan.degree("seq") > 1 and current.get(_BACKEND) == "partial_dtensor":
        raise PlanError("torchtitan's context parallelism needs another backend", hint=f'{_BACKEND} = "spmd_types"')
    if plan.degree("seq") > 1 and attention_backend(current) == _VARLEN:
        raise PlanError(f"torchtitan has no context parallelism of {_VARLEN} attention", hint=f"{ATTENTION}=flex")


def _check_model(plan: Plan, name: str) -> None:
    lacking = {"pipeline": (_UNSTAGED, "stage"), "context parallelism": (_UNSHARED, "seq")}
    for what, (models, axis) in lacking.items():
        if name in models and plan.degree(axis) > 1:  # pyright: ignore[reportArgumentType]
            raise PlanError(f"torchtitan until February 2026 has no {what} for {name}")


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
