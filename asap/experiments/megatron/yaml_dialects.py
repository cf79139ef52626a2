"""NeMo's and Megatron-Bridge's YAML as Megatron-LM's arguments.

NeMo (``conf/training/*/*.yaml`` of its launcher, ``megatron_gpt_config.yaml``) has ``trainer`` and ``model`` with a
sub-tree ``optim``; Megatron-Bridge writes its ``ConfigContainer`` with ``model``, ``train``, ``ddp``, ``optimizer``.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.megatron.names import check_method
from asap.stacks.megatron.stack import CORE_SECTION
from asap.stacks.stack_settings import StackSettings

NEMO, BRIDGE = "NeMo", "Megatron-Bridge"

_RENAMED = {
    "activations_checkpoint_granularity": "recompute_granularity",
    "ub_tp_comm_overlap": "tp_comm_overlap",
    "activations_checkpoint_method": "recompute_method",
    "activations_checkpoint_num_layers": "recompute_num_layers",
    "encoder_seq_length": "seq_length",
    "num_moe_experts": "num_experts",
    "override_vocab_size": "vocab_size",
}
_FLAGS = (
    "use_megatron_fsdp", "use_torch_fsdp2", "use_distributed_optimizer", "data_parallel_sharding_strategy",
    "grad_reduce_in_fp32",
)  # fmt: skip
_OF_OPTIMIZER = (
    "optimizer", "optimizer_cpu_offload", "optimizer_offload_fraction", "use_precision_aware_optimizer",
    "exp_avg_dtype", "exp_avg_sq_dtype", "main_grads_dtype",
)  # fmt: skip
_REFERENCE = re.compile(r"\$\{([^${}]+)\}")
_DEEPEST = 8
_STAGES = ("training", "fine_tuning", "peft")
"""Where NeMo's launcher has a configuration among its own."""
_OF_OTHER_JOBS = frozenset(("workload", "run", "inference", "export", "conversion", "evaluation"))
"""Sections of files that run something else than a training of Megatron-Bridge's (NeMo's launcher, ``conf/export``)."""
_BATCH = {"train_iters", "global_batch_size", "micro_batch_size"}
_OTHER_MODELS = (
    (re.compile(r"bert_binary_head"), "BERT"),
    (re.compile(r"encoder"), "an encoder-decoder"),
    (re.compile(r"vision(?:_\w+)?"), "a model of images"),
    (re.compile(r"crossattn_\w+|patch_(?:spatial|temporal|size)"), "a diffusion model"),
)
"""Keys of a model that is no decoder."""
_SHAPES = frozenset(("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups"))
_GATED = ("swiglu", "geglu", "reglu")
_OVERLAP = ("tp_comm_overlap", "overlap_moe_expert_parallel_comm", "delay_wgrad_compute")
_ARCHIVE = ".nemo"
_TRANSFORMER = "transformer"
_GPT2_TOKENIZER = "GPT2BPETokenizer"


def dialect(values: Mapping[str, Any]) -> str | None:
    """Which of the two a mapping is; ``None``: neither."""
    model = values.get("model")
    if not isinstance(model, dict):
        return None
    target = str(model.get("_target_", ""))
    parallel = any(key.endswith("_parallel_size") for key in model)
    train = values.get("train")
    if "megatron.bridge" in target or (isinstance(train, dict) and _BATCH & train.keys()):
        return BRIDGE
    if "nemo." in target or (parallel and ("trainer" in values or "exp_manager" in values)):
        return NEMO
    return BRIDGE if parallel and not _OF_OTHER_JOBS & values.keys() else None


def argument_of(key: str) -> str:
    """Megatron-LM's argument that a setting decides: ``model.encoder_seq_length`` → ``seq_length``."""
    name = key.rpartition(".")[2]
    return {"precision": "bf16"}.get(name, _RENAMED.get(name, name))


def nemo_arguments(values: Mapping[str, Any], kind: str, path: Path) -> tuple[StackSettings, tuple[str, ...]]:
    """The arguments of a configuration of NeMo or Megatron-Bridge, and notes.

    Raises:
        ConfigError: it describes something else than a decoder, or trains otherwise than all of it on tokens.
    """
    check_method(values, path)
    of_core = values["model"].get(_TRANSFORMER) if kind == BRIDGE else None
    own = (of_core if isinstance(of_core, dict) else {}) | values["model"]
    model: dict[str, Any] = {str(key): _resolved(value, values, ("model",)) for key, value in own.items()}
    other = next((name for marks, name in _OTHER_MODELS if any(map(marks.fullmatch, model))), None)
    if other:
        raise ConfigError(f"describes {other}; only decoders are read", where=str(path))
    found: dict[str, Any] = {}
    for key, value in model.items():
        if not isinstance(value, dict):
            found[_RENAMED.get(key, key)] = value
    notes = [
        f"{path.name}: {key} is {plain(value, 60)}, which is not resolved"
        for key, value in list(found.items())
        if isinstance(value, str) and "${" in value and not key.startswith(("data", "tokenizer"))
    ]
    found = {key: value for key, value in found.items() if not (isinstance(value, str) and "${" in value)}
    if "num_layers" not in found and (archive := _archive_of(model)):
        notes.append(f"the architecture is inside {plain(archive, 80)}, which is not opened")
    _read_model(found, model)
    (_read_nemo if kind == NEMO else _read_bridge)(found, _reader(values), model)
    if kind == BRIDGE and (isinstance(of_core, dict) or "_target_" in values["model"]):
        found[CORE_SECTION] = f"model.{_TRANSFORMER}" if isinstance(of_core, dict) else "model"
    return StackSettings(found, str(path)), tuple(notes)


def _archive_of(model: Mapping[str, Any]) -> str | None:
    """The archive that training goes on from, which has its model's configuration inside."""
    said = str(model.get("restore_from_path") or "")
    return said if said.endswith(_ARCHIVE) else None


def without_shapes(settings: StackSettings, path: Path) -> tuple[StackSettings, tuple[str, ...]]:
    """Settings that are laid over a recipe, without the shapes of its model that they change, and a note on these."""
    shapes = sorted(_SHAPES & settings.keys())
    if not shapes:
        return settings, ()
    rest = StackSettings({key: settings[key] for key in settings if key not in _SHAPES}, str(path))
    return rest, (f"{', '.join(shapes)} of the recipe's model are changed: say the whole model",)


def _read_model(found: dict[str, Any], model: Mapping[str, Any]) -> None:
    """What both write in other words than Megatron-LM."""
    activation = str(model.get("activation", ""))
    gated = model.get("gated_linear_unit") is True or any(activation.endswith(name) for name in _GATED)
    found["swiglu"] = gated
    found["untie_embeddings_and_output_weights"] = model.get("share_embeddings_and_output_weights", True) is False
    found["group_query_attention"] = model.get("num_query_groups") is not None
    if str(model.get("position_embedding_type", "learned_absolute")) == "learned_absolute":
        found.setdefault("max_position_embeddings", found.get("seq_length"))
    if (stages := model.get("virtual_pipeline_model_parallel_size")) is not None:
        found["num_virtual_stages_per_pipeline_rank"] = stages
    if model.get("fp8") not in (None, False, "None"):
        found["fp8_format"] = "hybrid"


def _read_nemo(found: dict[str, Any], at: Callable[..., Any], model: Mapping[str, Any]) -> None:
    """NeMo: ``trainer.precision``, ``optim.name``, nodes and devices, and the length at which answers are cut."""
    precision = str(at("trainer", "precision") or model.get("precision") or "")
    found["bf16"], found["fp16"] = precision.startswith("bf16"), precision.startswith("16")
    if (longest := at("model", "data", "train_ds", "max_seq_length")) is not None:
        found["seq_length"] = longest
    for key in ("global_batch_size", "micro_batch_size"):
        if (said := at("model", "data", "train_ds", key)) is not None:
            found[key] = said
    nodes, devices = at("trainer", "num_nodes"), at("trainer", "devices")
    if isinstance(nodes, int) and isinstance(devices, int) and devices > 0:
        found["nnodes"], found["nproc_per_node"] = nodes, devices
    optimizer = str(at("model", "optim", "name") or "")
    found["use_distributed_optimizer"] = optimizer in ("mcore_distributed_optim", "distributed_fused_adam")
    found["optimizer"] = "adam" if not optimizer or "optim" in optimizer or "adam" in optimizer else optimizer
    tokenizer = model.get("tokenizer")
    if isinstance(tokenizer, dict):
        kind = str(tokenizer.get("type"))
        found["tokenizer_type" if kind == _GPT2_TOKENIZER else "tokenizer_model"] = kind
    if model.get("fsdp") is True:
        found["use_torch_fsdp2"] = True
    if str(at("model", "optim", "grad_sync_dtype") or "").endswith(("bf16", "bfloat16")):
        found["grad_reduce_in_bf16"] = True
    spec = model.get("name")
    found["parallel_attention"] = model.get("transformer_block_type") == "parallel" or "falcon" in str(spec)


def _read_bridge(found: dict[str, Any], at: Callable[..., Any], model: Mapping[str, Any]) -> None:
    """Megatron-Bridge: batch in ``train``, sequence in ``dataset``, sharding in ``ddp`` and ``dist``."""
    for key in ("micro_batch_size", "global_batch_size"):
        found[key] = at("train", key)
    found["seq_length"] = at("dataset", "sequence_length") or at("dataset", "seq_length") or model.get("seq_length")
    for key in _FLAGS:
        said = [
            value
            for section in ("mixed_precision", "ddp", "dist", "optimizer")
            if (value := at(section, key)) is not None
        ]
        if said:
            found[key] = said[0] if isinstance(said[0], str) else any(value is True for value in said)
    found |= {key: value for key in _OVERLAP if (value := at("comm_overlap", key)) is not None}
    found |= {key: at("optimizer", key) for key in _OF_OPTIMIZER}
    precision = at("mixed_precision")
    words = precision if isinstance(precision, str) else " ".join(k for k, v in (precision or {}).items() if v is True)
    for key in ("bf16", "fp16"):
        found[key] = bool(found.get(key)) or key in words
    if (isinstance(precision, dict) and precision.get("fp8")) or "fp8" in words:
        found["fp8_format"] = "hybrid"
    found["tokenizer_type"], found["tokenizer_model"] = (
        at("tokenizer", "tokenizer_type"),
        at("tokenizer", "tokenizer_model"),
    )


def _reader(values: Mapping[str, Any]) -> Callable[..., Any]:
    def at(*path: str) -> Any:
        node: Any = values
        for key in path:
            node = node.get(key) if isinstance(node, dict) else None
        return _resolved(node, values, path[:-1])

    return at


def _resolved(value: Any, root: Mapping[str, Any], place: tuple[str, ...], deeper: int = _DEEPEST) -> Any:
    """A value with Hydra's ``${.key}``, ``${a.b}`` and ``${multiply:a, b}``; what cannot be resolved stays as it is."""
    if not isinstance(value, str) or "${" not in value or not deeper:
        return value
    found = _REFERENCE.search(value)
    if found is None:
        return value
    new = _reference(found[1], root, place)
    if new is None:
        return value
    whole = found[0] == value
    return _resolved(new if whole else value.replace(found[0], str(new)), root, place, deeper - 1)


def _reference(text: str, root: Mapping[str, Any], place: tuple[str, ...]) -> Any:
    name, colon, arguments = text.partition(":")
    if colon:
        numbers = [digits(part.strip()) for part in arguments.split(",")]
        if name not in ("multiply", "divide") or len(numbers) != 2:
            return None
        first, second = numbers
        if first is None or second is None:
            return None
        return first * second if name == "multiply" else first // second if second else None
    path = text.split(".")
    if text.startswith("."):
        path = [*place, *path[1:]]
    node: Any = root
    for key in path[1:] if path[0] in _STAGES and path[0] not in root else path:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, str | int | float) and not isinstance(node, bool) else None
