"""YAML of NeMo and Megatron-Bridge."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.hydra_defaults import laid_over
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.training_program import refuse
from asap.stacks.megatron.sections import BRIDGE, arguments_of
from asap.stacks.megatron.workload import PRECISION
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted

_SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
_SHAPES = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups")
_OPTIMIZER, _GRANULARITY = "optimizer", "recompute_granularity"


def read_nemo(
    values: Mapping[str, Any],
    kind: str,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
) -> Experiment:
    """``experiment`` with what a YAML of NeMo or Megatron-Bridge says; raises like :func:`read_megatron`."""
    values, overrides = laid_over(values, overrides)
    refuse(spec("nemo"), StackSettings(dotted(values), str(path)))
    found, open_ = arguments_of(values, kind)
    archive = str(values["model"].get("restore_from_path") or "")
    notes = [
        f"{path.name}: {key} is {plain(value, 60)}, which is not resolved"
        for key, value in open_.items()
        if not key.startswith(("data", "tokenizer"))
    ]
    if "num_layers" not in found and archive.endswith(".nemo"):
        notes.append(f"the architecture is inside {plain(archive, 80)}, which is not opened")
    unsettled = frozenset[str]()
    if kind == BRIDGE and "_target_" not in values["model"]:
        notes.append(f"{path.name} is laid over a recipe, which decides what it does not say")
        if shapes := sorted(key for key in _SHAPES if found.pop(key, None) is not None):
            notes.append(f"{', '.join(shapes)} of the recipe's model are changed: say the whole model")
        unsettled = _left_to_recipe(found, isinstance(values.get("mixed_precision"), str))
    settings = StackSettings(found, str(path))
    experiment = experiment.knowing(*notes)
    return read_megatron(settings, overrides, experiment, kind, unsettled)


def _left_to_recipe(found: Mapping[str, Any], says_precision: bool) -> frozenset[str]:
    """What is open in a YAML that is laid over a recipe."""
    granularity = found.get(_GRANULARITY)
    known = granularity == "full" or (granularity == "selective" and "recompute_modules" in found)
    recomputation = () if known else spec("megatron").names["recomputation"]
    precision = () if says_precision else PRECISION
    said = {key for key, value in found.items() if value not in (None, False)}
    return frozenset({*_SIZES, *precision, *recomputation, _OPTIMIZER} - said)
