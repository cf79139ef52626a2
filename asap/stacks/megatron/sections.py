"""YAML of NeMo and of Megatron-Bridge as Megatron-LM's arguments.

NeMo (``conf/training/*/*.yaml`` of its launcher, ``megatron_gpt_config.yaml``) has ``trainer`` and ``model`` with a
sub-tree ``optim``; Megatron-Bridge writes its ``ConfigContainer`` with ``model``, ``train``, ``ddp``, ``optimizer``.
"""

from collections.abc import Mapping
from typing import Any

from asap.stacks.megatron.stack import CORE_SECTION
from asap.stacks.registry import spec
from asap.stacks.rules import meant
from asap.stacks.stack_settings import dotted, resolved

NEMO, BRIDGE = "NeMo", "Megatron-Bridge"
VIRTUAL_SIZE, VIRTUAL = "virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"
SECTIONS = ("model", "mixed_precision", "ddp", "dist", "optimizer", "comm_overlap", "train")
"""Of a configuration of Megatron-Bridge; what a later one says counts, and of a switch that it is on in one."""
_BATCH = {"train_iters", "global_batch_size", "micro_batch_size"}
_TRANSFORMER = "transformer"
_FORMATS = {"fp4": "e2m1", "fp8": "hybrid"}

Values = Mapping[str, Any]


def dialect(values: Values) -> str | None:
    """Whether a mapping is NeMo's or Megatron-Bridge's; ``None``: neither."""
    model = values.get("model")
    if not isinstance(model, dict):
        return None
    target, train = str(model.get("_target_", "")), values.get("train")
    parallel = any(key.endswith("_parallel_size") for key in model)
    if "megatron.bridge" in target or (isinstance(train, dict) and _BATCH & train.keys()):
        return BRIDGE
    if "nemo." in target or (parallel and ("trainer" in values or "exp_manager" in values)):
        return NEMO
    return BRIDGE if parallel and not {*spec("megatron-bridge").names["other_jobs"]} & values.keys() else None


def arguments_of(values: Values, kind: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments of a configuration of NeMo or Megatron-Bridge, and those that refer to what is not there."""
    renamed = spec("nemo").renamed
    flat = resolved(dotted(values), spec("nemo").names["stages"])
    core = _within(flat, f"model.{_TRANSFORMER}") if kind == BRIDGE else {}
    model = core | _within(flat, "model")
    found = {renamed.get(key, key): value for key, value in model.items()}
    open_ = {key: value for key, value in found.items() if isinstance(value, str) and "${" in value}
    found = {key: value for key, value in found.items() if key not in open_}
    if str(model.get("position_embedding_type", "learned_absolute")) == "learned_absolute":
        found.setdefault("max_position_embeddings", found.get("seq_length"))
    found |= meant(spec("nemo").means, {**flat, **model, "dialect": kind})
    found |= _bridge_settings(flat, model) if kind == BRIDGE else {}
    if kind == BRIDGE and (core or "_target_" in model):
        found[CORE_SECTION] = f"model.{_TRANSFORMER}" if core else "model"
    return found, open_


def _within(flat: Values, section: str) -> dict[str, Any]:
    """Settings of a section; a type that a program makes, as ``{_target_: torch.bfloat16}``, by its name."""
    own = {key.removeprefix(f"{section}."): value for key, value in flat.items() if key.startswith(f"{section}.")}
    return {name: value for key, value in own.items() if "." not in (name := key.removesuffix("._target_"))}


def _bridge_settings(flat: Values, model: Values) -> dict[str, Any]:
    """Megatron-Bridge: all of its sections, with its precision said as a whole."""
    found = section_arguments({key: value for key, value in flat.items() if not key.startswith("model.")})
    found["seq_length"] = model.get("seq_length") or found.get("seq_length")
    said, switches = flat.get("mixed_precision"), _within(flat, "mixed_precision").items()
    on = (key for key, value in switches if value is True or (key in _FORMATS and value))
    words = said if isinstance(said, str) else " ".join(on)  # such as bf16_with_fp8_mixed
    precision = {key: key in words or True in (model.get(key), found.get(key)) for key in ("bf16", "fp16")}
    form = next(({f"{kind}_format": form} for kind, form in _FORMATS.items() if kind in words), {})
    return (
        found | precision | form | {key: flat.get(f"tokenizer.{key}") for key in ("tokenizer_type", "tokenizer_model")}
    )


def section_arguments(flat: Values) -> dict[str, Any]:
    """What the sections of a configuration of Megatron-Bridge say by dotted key, under Megatron-LM's names."""
    known, renamed = spec("megatron").words, {**spec("nemo").renamed, VIRTUAL_SIZE: VIRTUAL}
    found: dict[str, Any] = {}
    for name in SECTIONS:
        for key, value in _within(flat, name).items():
            argument = renamed.get(key, key)
            if argument in known and value is not None and not (found.get(argument) is True and value is False):
                found[argument] = value
    lengths = (flat.get(f"dataset.{key}") for key in ("seq_length", "sequence_length"))
    if "seq_length" not in found and (length := next((one for one in lengths if one is not None), None)) is not None:
        found["seq_length"] = length
    return found
