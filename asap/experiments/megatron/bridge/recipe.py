"""A recipe of Megatron-Bridge with what a command or a YAML lays over it.

What is not said is the recipe's, as far as it is known by its name, else unknown.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import validation_reason
from asap.experiments.files.python_literals import CLASS, UNKNOWN
from asap.experiments.megatron import arguments as megatron
from asap.experiments.megatron.bridge.script import left_to_recipe, model_of
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.megatron.yaml_dialects import BRIDGE
from asap.experiments.named_model import read_named_model
from asap.models import Architecture
from asap.stacks.megatron.stages import LAYOUT
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings

VIRTUAL_SIZE = "virtual_pipeline_model_parallel_size"
PARAMETERS = frozenset(spec("megatron-bridge").names["parameters"])
_KEY, _PARAMETER = "mixed_precision", "precision_config"
_IN_FP32, _IN_BF16 = "grad_reduce_in_fp32", "grad_reduce_in_bf16"
_KINDS = frozenset(("bf16", "fp16", "fp8", "fp4"))


def precision_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments, by the name of a precision (``bf16_mixed``) or by its fields; none where nothing is
    said."""
    found = said.get(_KEY, said.get(_PARAMETER))
    if found is None:
        return {}
    if not isinstance(found, str | dict):
        return {"bf16": UNKNOWN}
    fields: dict[str, Any] = found if isinstance(found, dict) else {}
    if isinstance(found, dict) and not _KINDS & fields.keys():
        return _gradients(fields)
    words = found if isinstance(found, str) else " ".join(key for key in ("bf16", "fp16") if fields.get(key) is True)
    arguments: dict[str, Any] = {"bf16": "bf16" in words, "fp16": "bf16" not in words and "fp16" in words}
    if isinstance(found, str) and not any(arguments.values()):
        arguments = {"bf16": True if "fp8" in words or "fp4" in words else UNKNOWN}
    if fields.get("fp4") or "fp4" in words:
        arguments["fp4_format"] = "e2m1"
    elif fields.get("fp8") or "fp8" in words:
        arguments["fp8_format"] = "hybrid"
    if arguments.get("bf16") is True and fields.get(_IN_FP32) is not UNKNOWN:
        arguments[_IN_FP32 if fields.get(_IN_FP32, True) else _IN_BF16] = True
    return arguments


def _gradients(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of a precision that is changed and not said."""
    reduces = fields.get(_IN_FP32)
    return {_IN_FP32: reduces, _IN_BF16: not reduces} if isinstance(reduces, bool) else {}


_FILE = "recipes.jsonl"

EARLIER = {
    "tensor_parallelism": "tensor_model_parallel_size", "pipeline_parallelism": "pipeline_model_parallel_size",
    "context_parallelism": "context_parallel_size", "sequence_parallelism": "sequence_parallel",
    "expert_parallelism": "expert_model_parallel_size", "global_batch_size": "global_batch_size",
    "micro_batch_size": "micro_batch_size", "seq_length": "seq_length",
    "virtual_pipeline_parallelism": "num_virtual_stages_per_pipeline_rank",
}  # fmt: skip
"""What functions of recipes take in Megatron-Bridge 0.1."""


def recipe_settings(recipe: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments that a recipe sets, with a note on where they are from; none where it is not known."""
    known = _table().get(recipe)
    if known is None:
        return {}, ()
    settings = dict(known["settings"])
    where = f"what {plain(recipe, 80)} does not change is that of {BRIDGE} {known['releases']}"
    return settings, (where,) if settings else ()


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = (Path(__file__).parent / _FILE).read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    return {entry["recipe"]: entry for entry in entries}


SHAPES = {
    "num_layers": "layers", "hidden_size": "d_model", "ffn_hidden_size": "d_ff", "num_attention_heads": "heads",
    "num_query_groups": "kv_heads", "kv_channels": "head_dim", "vocab_size": "vocab", "num_moe_experts": "experts",
    "moe_router_topk": "experts_per_token", "moe_ffn_hidden_size": "expert_d_ff",
    "share_embeddings_and_output_weights": "tied_embeddings", "gated_linear_unit": "gated_mlp",
    "qk_layernorm": "qk_norm",
}  # fmt: skip


def read_changed_model(name: str, config: Mapping[str, Any]) -> tuple[Architecture, tuple[str, ...]]:
    """The model of that name with the shapes that a configuration changes, and notes; without any where they leave it
    open."""
    model, notes = read_named_model(name)
    changed = {field: config[key] for key, field in SHAPES.items() if config.get(key) is not None}
    changed = {field: value for field, value in changed.items() if value != getattr(model, field)}
    if not changed:
        return model, notes
    if UNKNOWN in changed.values() or model.layers is None:
        return Architecture(), (f"shapes of {plain(name, 60)} are changed: say the whole model",)
    listed = ", ".join(f"{field}={plain(value, 20)}" for field, value in changed.items())
    if "head_dim" not in changed and {"d_model", "heads"} & changed.keys():
        width, heads = changed.get("d_model", model.d_model), changed.get("heads", model.heads)
        changed["head_dim"] = width // heads if width and heads else None
    if "heads" in changed and "kv_heads" not in changed and model.kv_heads == model.heads:
        changed["kv_heads"] = changed["heads"]
    try:
        whole = Architecture.model_validate({**model.model_dump(), **changed})
    except ValidationError as error:
        return Architecture(), (f"the model is unknown: {plain(name, 60)} with {listed} {validation_reason(error)}",)
    return whole, (*notes, f"the model is {plain(name, 60)} with {listed}")


_OTHER = re.compile(
    r"mamba|(?<![a-z])ssm|nemotron_?h|nemotron_?3|nano_?v2|hybrid|zebra|t5|vlm?(?![a-z])|omni|llava|flux|wan_|diffusion|audio"
    r"|multimodal|bert|hyena|esm\d|(?:^|[_.])clip_",
    re.I,
)
"""In names of what is no decoder of text with attention in each layer."""


def read_model(said: Mapping[str, Any], where: str) -> tuple[Architecture, tuple[str, ...]]:
    """The model of a recipe, with notes.

    Raises:
        ConfigError: it has other layers than a decoder of attention and MLPs.
    """
    recipe, model = str(said[CLASS]), said.get("model")
    check_is_decoder((recipe.lstrip("_"),), where)
    return read_changed_model(model_of(recipe, None), model if isinstance(model, Mapping) else {})


def check_is_decoder(names: Iterable[str | None], where: str) -> None:
    """Raise ConfigError where a name says a model that has other layers than a decoder of attention and MLPs."""
    if other := next((text for text in names if text and _OTHER.search(text)), None):
        reason = f"trains {plain(other, 60)}; only decoders of attention and MLPs are read"
        raise ConfigError(reason, where=where)


_VIRTUAL = "num_virtual_stages_per_pipeline_rank"
_RENAMED = {VIRTUAL_SIZE: _VIRTUAL, "num_moe_experts": "num_experts"}
_SECTIONS = ("model", "train", "ddp", "dist", "optimizer", "comm_overlap")
_LENGTHS = ("seq_length", "sequence_length")
_SHARDS_STATE = "use_distributed_optimizer"
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32", "uint8": "fp8"}
_OF_SHAPE = frozenset(
    [
        "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
        "vocab_size", "num_experts", "moe_router_topk", "moe_ffn_hidden_size", "position_embedding_type",
    ]
)  # fmt: skip
_ADAPTERS = ("lora", "dora", "peft")


def read_recipe(
    said: Mapping[str, Any],
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
) -> Experiment:
    """``experiment`` with a configuration.

    Args:
        said: by section, ``UNKNOWN`` where only a run can tell; the recipe that it is laid over under ``CLASS``.
        path: the file that says it.
        overrides: ``key=value`` of the user, in Megatron-LM's names.
        experiment: what is known besides.

    Raises:
        ConfigError: adapters are trained, or a value is of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    _check_trains_all(said, path)
    notes: tuple[str, ...] = ()
    model, recipe = experiment.model, str(said[CLASS])
    if model is None:
        model, notes = read_model(said, str(path))
    base, more = recipe_settings(recipe)
    every = {**base, **_settings(said)}
    notes += more
    settings = StackSettings({key: value for key, value in every.items() if value is not UNKNOWN}, str(path))
    open_ = {key for key, value in every.items() if value is UNKNOWN}
    left = left_to_recipe(settings, model) | {key for key in ("global_batch_size",) if key not in settings}
    open_ |= left - every.keys()
    if not {_SHARDS_STATE, "use_megatron_fsdp"} & every.keys():
        notes += (f"whether replicas share the optimizer's state is the recipe's: add {_SHARDS_STATE}=true or false",)
    if every.get(LAYOUT) is UNKNOWN:
        notes += (f"{LAYOUT} is not read: stages are taken as equal",)
    experiment = experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})
    return read_megatron(settings, overrides, experiment, BRIDGE, frozenset(open_))


def _check_trains_all(said: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where adapters are trained, as by a recipe of fine-tuning unless told otherwise."""
    recipe = str(said[CLASS])
    parts = re.split(r"[._]", recipe)
    named = any(kind in parts for kind in _ADAPTERS)
    scheme = said.get("peft", "said" if named or "finetune" in parts else None)
    if scheme is None or (isinstance(scheme, str) and scheme.casefold() in ("none", "")):
        return
    kind = scheme if isinstance(scheme, str) else "said"
    reason = f"trains adapters ({plain(kind, 40)}): training a part of the parameters is not modelled"
    if kind == "said":
        reason = f"{plain(recipe, 60)} trains adapters unless peft is None, and training a part is not modelled"
    raise ConfigError(reason, where=str(path), hint="give a run that trains all parameters")


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments, ``UNKNOWN`` where only a run can tell."""
    found = {argument: said[key] for key, argument in EARLIER.items() if key in said}
    found |= {_RENAMED.get(key, key): value for key, value in said.items() if key in PARAMETERS}
    for name in _SECTIONS:
        section = {_RENAMED.get(key, key): value for key, value in _section(said, name).items()}
        found |= {key: value for key, value in section.items() if key in megatron.READ - _OF_SHAPE}
    if found.get(_VIRTUAL, 0) is None:
        found[_VIRTUAL] = 1
    dataset = _section(said, "dataset")
    lengths = [place.get(key) for place in (_section(said, "model"), dataset, said) for key in _LENGTHS if key in place]
    if lengths := [length for length in lengths if length is not None]:
        found["seq_length"] = lengths[0]
    found |= precision_of(said)
    kept = {key: value for key, value in found.items() if value is not None or key == "recompute_granularity"}
    return {key: _plain(value) for key, value in kept.items()}


def _plain(value: Any) -> Any:
    """A value of YAML: a type of numbers by its short name, a list of words as it is."""
    if isinstance(value, str):
        return _DTYPES.get(value, value)
    if isinstance(value, list):
        return value if all(isinstance(item, str) for item in value) else UNKNOWN
    return UNKNOWN if isinstance(value, dict) else value


def _section(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = said.get(name)
    return found if isinstance(found, Mapping) else {}
