"""YAML of NeMo and Megatron-Bridge."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.launch.refusal import refuse
from asap.experiments.tables.reader import is_setting as is_of_table
from asap.experiments.tables.reader import read_table
from asap.stacks.megatron.reading import PRECISION
from asap.stacks.megatron.sections import BRIDGE, arguments_of
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted, overriding

_SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
_SHAPES = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups")
_OPTIMIZER, _GRANULARITY = "optimizer", "recompute_granularity"
_ADDS = "+"


def read_nemo(
    values: Mapping[str, Any], kind: str, path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a YAML of NeMo or Megatron-Bridge says; raises like :func:`read_table`."""
    given = overriding(overrides, lambda key: key.lstrip(_ADDS))
    sections = {key: parse_yaml(text, f"override {key}")[0] for key, text in given.items() if "." in key}
    replaced = tuple(f"{key}." for key in sections)
    values = {key: value for key, value in dotted(values).items() if not key.startswith(replaced)} | sections
    refuse(spec("nemo"), StackSettings(values, str(path)))
    found, open_ = arguments_of(values, kind)
    adapters = (key for key in values if key.startswith(("peft.", "model.peft.")))
    found |= {key.removeprefix("model."): values[key] for key in adapters}
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
    others = [f"{key}={text}" for key, text in given.items() if "." not in key]
    table = spec("megatron-bridge" if kind == BRIDGE else "nemo")
    return read_table(table, found, path, others, experiment.knowing(*notes), unsettled)


def is_setting(values: Mapping[str, Any], key: str) -> bool:
    """Whether an override is a setting of a section, in Hydra's grammar, or one of Megatron-LM's arguments."""
    return is_of_table(spec("megatron-bridge"), values, key.lstrip(_ADDS)) or key.startswith(_ADDS)


def _left_to_recipe(found: Mapping[str, Any], says_precision: bool) -> frozenset[str]:
    """What is open in a YAML that is laid over a recipe."""
    granularity = found.get(_GRANULARITY)
    known = granularity == "full" or (granularity == "selective" and "recompute_modules" in found)
    recomputation = () if known else spec("megatron").names["recomputation"]
    precision = () if says_precision else PRECISION
    said = {key for key, value in found.items() if value not in (None, False)}
    return frozenset({*_SIZES, *precision, *recomputation, _OPTIMIZER} - said)
