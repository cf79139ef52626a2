"""YAML of NeMo and Megatron-Bridge."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.megatron.reader import is_argument, read_megatron
from asap.experiments.training_program import refuse
from asap.models import Architecture
from asap.stacks.megatron.sections import BRIDGE, arguments_of
from asap.stacks.megatron.workload import PRECISION
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted, not_a_setting

_SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
_SHAPES = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups")
_OPTIMIZER, _GRANULARITY = "optimizer", "recompute_granularity"
_ADDS, _DELETES = "+", "~"


def read_nemo(
    values: Mapping[str, Any],
    kind: str,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
) -> Experiment:
    """``experiment`` with what a YAML of NeMo or Megatron-Bridge says; raises like :func:`read_megatron`."""
    values, overrides = _laid_over(values, overrides)
    refuse(spec("nemo"), StackSettings(values, str(path)))
    found, open_ = arguments_of(values, kind)
    archive = str(values.get("model.restore_from_path") or "")
    notes = [
        f"{path.name}: {key} is {plain(value, 60)}, which is not resolved"
        for key, value in open_.items()
        if not key.startswith(("data", "tokenizer"))
    ]
    if "num_layers" not in found and archive.endswith(".nemo"):
        notes.append(f"the architecture is inside {plain(archive, 80)}, which is not opened")
    unsettled = frozenset[str]()
    if kind == BRIDGE and "model._target_" not in values:
        notes.append(f"{path.name} is laid over a recipe, which decides what it does not say")
        if shapes := sorted(key for key in _SHAPES if found.pop(key, None) is not None):
            notes.append(f"{', '.join(shapes)} of the recipe's model are changed: say the whole model")
        unsettled = _left_to_recipe(found, isinstance(values.get("mixed_precision"), str))
        if _OPTIMIZER in unsettled:
            notes.append(f"the optimizer is not said, and taken for Adam: add {_OPTIMIZER}=NAME where it is another")
    settings = StackSettings(found, str(path))
    experiment = experiment.knowing(*notes)
    return read_megatron(settings, overrides, experiment, kind, unsettled)


def is_setting(values: Mapping[str, Any], key: str) -> bool:
    """Whether an override is a setting of a section, in Hydra's grammar, or one of Megatron-LM's arguments."""
    section, dot, name = key.lstrip(_ADDS + _DELETES).partition(".")
    if not dot or (section == "model" and name in Architecture.model_fields):
        return not dot and is_argument(key)
    return section in {*values, *spec("megatron-bridge").sections} or key.startswith((_ADDS, _DELETES))


def _laid_over(values: Mapping[str, Any], overrides: Iterable[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Settings by dotted key with the overrides of sections on top, and the other overrides.

    Raises:
        ConfigError: a value is no YAML, or what stands before its last dot is no section.
        UsageError: an override is not ``key=value``.
    """
    found, others = dotted(values), list[str]()
    for override in overrides:
        key, separator, text = override.partition("=")
        name = key.lstrip(_ADDS + _DELETES)
        section = name.rpartition(".")[0]
        if not section:
            others.append(override)
            continue
        if not separator and not key.startswith(_DELETES):
            raise not_a_setting(override)
        if section in found and found[section] is not None:
            raise ConfigError(f"{plain(section, 60)} is no section", where=f"override {plain(key, 80)}")
        found = {one: value for one, value in found.items() if one != name and not one.startswith(f"{name}.")}
        if not key.startswith(_DELETES):
            found[name] = parse_yaml(text, f"override {plain(key, 80)}")[0]
    return found, tuple(others)


def _left_to_recipe(found: Mapping[str, Any], says_precision: bool) -> frozenset[str]:
    """What is open in a YAML that is laid over a recipe."""
    granularity = found.get(_GRANULARITY)
    known = granularity == "full" or (granularity == "selective" and "recompute_modules" in found)
    recomputation = () if known else spec("megatron").names["recomputation"]
    precision = () if says_precision else PRECISION
    said = {key for key, value in found.items() if value not in (None, False)}
    return frozenset({*_SIZES, *precision, *recomputation, _OPTIMIZER} - said)
