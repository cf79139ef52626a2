"""What of torchtitan no table says: what a run writes as JSON, precision, kernels, and what hangs on the plan."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from asap.models import Architecture
from asap.plans.plan import Plan
from asap.plans.validity import Degrees
from asap.stacks.reading import field_of, is_on
from asap.stacks.spec import Spec
from asap.stacks.statements import CONFIG
from asap.stacks.torchtitan import settings as titan
from asap.stacks.torchtitan.model import model_of as model_of
from asap.stacks.torchtitan.model import own_settings
from asap.stacks.torchtitan.settings import counted as counted
from asap.stacks.torchtitan.settings import recomputing as recomputing
from asap.stacks.torchtitan.settings import remat_of as remat_of
from asap.stacks.torchtitan.stages import repeats_of as repeats_of
from asap.stacks.torchtitan.stages import stage_settings

Settings = Mapping[str, object]
PYTHON = "configured_in_python"
"""Among a run's settings: its configuration is a Python function, not TOML."""
_RECOMPUTATION = "activation_checkpoint"
_CLASSES = {"full": "FullAC.Config()", "selective": "SelectiveAC.Config()", "none": "None"}
_SPEC, _SHAPES = "model_spec.", "model_spec.model."
_GROUPS = "optimizer.param_groups"
_ADAPTERS = re.compile(r"(?:^|\.)(?:q?lora|dora|peft|adapters?)\.(?:enabled?|use\w*)$")
"""Switches of adapters, without which the rest of their section says nothing."""
_UNKNOWN = "whether matrix products run in fp8 is not in the file: add workload.precision=fp8 where they do"


def prepared(settings: Settings, _: int | None = None) -> dict[str, object]:
    """The settings; those of the JSON that a run writes since 2026 with the names that TOML has for them."""
    off = {key.rpartition(".")[0] for key in settings if _ADAPTERS.search(key) and not is_on(settings, key)}
    found = {key: value for key, value in settings.items() if key.rpartition(".")[0] not in off}
    if not any(key.startswith(_SPEC) for key in settings):
        return found
    found = {key: value for key, value in found.items() if not key.startswith(_SPEC)}
    layers = settings.get(f"{_SHAPES}layers", settings.get(f"{_SHAPES}n_layers"))
    found["model.n_layers"] = len(layers) if isinstance(layers, list) else layers
    groups = settings.get(_GROUPS)
    last = groups[-1] if isinstance(groups, list) and groups else None
    if isinstance(last, dict) and "optimizer_name" in last:
        found["optimizer.name"] = last["optimizer_name"]
    return found


def written(
    settings: Settings, plan: Plan, wanted: Mapping[str, str], layers: int | None, **_: object
) -> dict[str, str]:
    """Settings of a plan with those of experts, stages and batches, and what they need beside them."""
    others = {key: value for key, value in wanted.items() if key != titan.EXPERT}
    found = {**others, **titan.expert_degrees(plan, settings), **stage_settings(plan, settings, layers)}
    return titan.batch_settings(plan, settings, found)


def lines(_: Spec, changed: Mapping[str, str], current: Settings) -> str:
    """Settings that change, as TOML or in Python."""
    return python_lines(changed) if PYTHON in current else titan.toml_lines(changed)


def plan_fields(settings: Settings, plan: Plan | None, model: Architecture | None, *_: object) -> dict[str, Any]:
    """Fields of the workload that hang on the plan: what is sharded, and over which axes experts lie."""
    sharded = plan is not None and plan.degree("data") * plan.degree("expert") > 1
    split = plan is not None and plan.degree("model") > 1
    overlaps = any(is_on(settings, f"{section}.{_OVERLAPS}") for section in ("parallelism", "experimental"))
    return {
        "zero_stage": 3 if sharded else None,
        "sequence_parallel": True,
        "overlaps_tensor": overlaps and field_of(titan.TABLE, "compiled", settings) if split else None,
        "experts_over": titan.experts_over(settings, model is not None and model.is_moe),
    }


_OVERLAPS = "enable_async_tensor_parallel"
"""Asynchronous tensor parallelism, which torch.compile makes of the compiled model."""


def notes_on(settings: Settings, plan: Plan | None, _: int | None) -> Iterator[str]:
    """What of the settings the plan says otherwise, or leaves open."""
    if PYTHON in settings and field_of(titan.TABLE, "precision", settings) is None:
        yield _UNKNOWN
    if own := own_settings(settings, of_shapes=False):
        yield f"not read, as no torchtitan has it: {own}"
    over = titan.experts_over(settings) if plan else ()
    if plan is not None and (folded := tuple(axis for axis in over if plan.degree(axis) > 1)):
        yield f"experts lie over {settings[titan.EXPERT]} devices, here {Degrees.of(plan, folded).expert_axes}"


def python_lines(settings: Mapping[str, str]) -> str:
    """``config.parallelism.tensor_parallel_degree = 4``, one a line."""
    statements = (_statement(key, value) for key, value in settings.items() if key != titan.REMAT_OPTION)
    return "\n".join(f"{CONFIG}{key} = {value}" for key, value in statements)


def _statement(key: str, value: str) -> tuple[str, str]:
    if key == titan.REMAT:
        return _RECOMPUTATION, _CLASSES[value]
    return key, value.capitalize() if value in ("true", "false") else titan.literal(key, value)
