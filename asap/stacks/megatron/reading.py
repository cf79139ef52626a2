"""What Megatron-LM's arguments say, and those of forks and of what runs on its core: model, plan, batch, workload."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from asap.core.numbers import digits
from asap.core.text import plain
from asap.models import Architecture, find_architecture
from asap.models.parameters import linear_attention_parameters
from asap.models.workload import GraphModule
from asap.plans.plan import Plan, Remat
from asap.plans.remat import MODULES
from asap.plans.validity import Degrees
from asap.stacks.megatron.degrees import EXPERT, EXPERT_TENSOR, TENSOR, experts_over
from asap.stacks.megatron.releases import rename_fork_options
from asap.stacks.megatron.stages import GRANULARITY, counted_layers, lays_out_stages, words_of
from asap.stacks.reading import field_of
from asap.stacks.registry import spec
from asap.stacks.shapes import padded, shapes_of
from asap.stacks.stack_settings import StackSettings

Settings = Mapping[str, object]


def prepared(settings: Settings, _: int | None = None) -> Settings:
    """The arguments under Megatron-LM's names, those of its forks and of Megatron-DeepSpeed among them."""
    return rename_fork_options(settings if isinstance(settings, StackSettings) else StackSettings(settings, ""))


def model_of(settings: StackSettings) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Fields of the model and notes; none where its layers are not said."""
    return fields_of(settings) if "num_layers" in settings else ({}, ())


def plan_fields(
    settings: StackSettings, plan: Plan | None, model: Architecture | None, batch: int | None, framework: str
) -> dict[str, Any]:
    """Fields of the workload."""
    layers, table = model.layers if model else None, spec("megatron")
    if framework == CORE and settings.flag("deepspeed"):
        framework = DEEPSPEED
    # Megatron-LM's own defaults (arguments.py), which what builds on its core need not have
    said = {field: field_of(table, field, settings) for field in ("gradient_precision", "expert_dispatcher")}
    usual = {"gradient_precision": settings.flag("bf16") and "fp32"}
    usual |= {"expert_dispatcher": "moe_token_dispatcher_type" not in settings and "all_gather"}
    unsaid = {field: value for field, value in usual.items() if framework == CORE and value and said[field] is None}
    unsaid |= {} if settings.whole("num_experts") else {"expert_dispatcher": None}
    old = settings.flag("use_legacy_models") or settings.text("transformer_impl") == "local"
    captured = settings.words("cuda_graph_modules") or settings.words("cuda_graph_scope")
    modules = {module for word in captured for module in word.split(",")}
    by_module = field_of(table, "cuda_graphs", settings) == "module"
    stages = (plan.degree("stage"), plan.pipeline_repeats) if plan else (1, 1)
    laid_out = plan is not None and lays_out_stages(settings, layers, *stages)
    return unsaid | {
        "zero_stage": field_of(table, "zero_stage", settings),
        "sequence_length": settings.count("seq_length"),
        "framework": "Megatron-LM" if old and framework == CORE else framework,
        "graph_modules": tuple(each for each in get_args(GraphModule) if by_module and each in modules),
        "pipelined_layers": counted if (counted := counted_layers(settings, layers)) != layers else None,
        "experts_over": experts_over(settings),
        "laid_out_stages": stages if laid_out else None,
    }


def notes_on(settings: StackSettings, plan: Plan | None, layers: int | None) -> Iterator[str]:
    """What of the arguments the plan says otherwise, or no prediction uses."""
    if plan is None:
        return
    tensor, experts = settings.count(TENSOR) or 1, settings.count(EXPERT) or 1
    split = settings.count(EXPERT_TENSOR, tensor) or tensor
    if folded := tuple(axis for axis in experts_over(settings) if plan.degree(axis) > 1):
        yield f"experts lie over {settings[EXPERT]} devices, here {Degrees.of(plan, folded).expert_axes}"
    if 1 < split < tensor and experts > 1:
        yield f"{EXPERT_TENSOR}={split}: experts are taken as split {tensor} ways, as attention is"
    if split > tensor and plan.degree("expert") > 1:
        taken = plan.degree("expert")
        yield f"{EXPERT_TENSOR}={split}: {experts} x {split} devices are taken as {taken} x {tensor}"
    if layers is None and plan.remat is Remat.FULL and settings.text("recompute_method") == "block":
        yield "recompute_method block: all layers are taken as recomputed, as their number is not known"
    unknown = [plain(module, 40) for module in words_of(settings.get("recompute_modules")) if module not in MODULES]
    if unknown and settings.text(GRANULARITY) == "selective":
        taken = plan.remat.value if plan.remat else "unknown"
        yield f"recompute_modules {', '.join(unknown)}: not modelled; the rest is taken as remat={taken}"


CORE, DEEPSPEED = "Megatron-Core", "Megatron-DeepSpeed"
"""Frameworks that have these arguments, as a workload names them."""
PRECISION = frozenset(("bf16", "fp16", "fp8_format", "fp4_format"))
"""Arguments that decide the precision of matrix products."""


_TABLE = spec("megatron")
_VARIANT, _FREQUENCY = "experimental_attention_variant", "linear_attention_freq"
_GATED_DELTA_NET = ("gdn", "gdn2", "gated_delta_net")
_LINEAR = (
    "linear_num_key_heads", "linear_key_head_dim", "linear_num_value_heads", "linear_value_head_dim",
    "linear_conv_kernel_dim",
)  # fmt: skip
_GPT2_TOKENS, _LLAMA_TOKENS = 50_257, 32_000
_OF_LLAMA, _OF_GPT2 = "Llama2Tokenizer", "GPT2BPETokenizer"
_GPT2 = re.compile(r"gpt-?2", re.IGNORECASE)
_TOKENIZER_FILE = re.compile(r"/tokenizer\.(?:model|json)$")
"""A file in the folder of the model that it is of."""
_TERM = re.compile(r"\[([01](?:,[01])*)\](?:\*(\d+))?")
_MOST_LAYERS = 10_000


def fields_of(settings: StackSettings) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Fields of the model, and what a reader should know.

    Raises:
        ConfigError: an argument is of the wrong kind, or says a layer that is not read.
    """
    notes: list[str] = []
    fields, _ = shapes_of(_TABLE.model, settings, None)
    width, heads = settings.count("hidden_size"), settings.count("num_attention_heads")
    if width and heads and not width % heads:
        fields.setdefault("head_dim", width // heads)
    fields |= _window(settings, notes)
    fields |= _experts(settings, fields.get("expert_d_ff"), notes) if "experts" in fields else {}
    if "vocab" not in fields and (size := _tokens(settings, notes)) is not None:
        fields["vocab"] = padded(_TABLE.model, settings, size)
    return fields | {"attention_parameters": _mean_attention_parameters(settings, notes)}, tuple(notes)


def _window(settings: StackSettings, notes: list[str]) -> dict[str, int | None]:
    """A window of tokens before one, and which layers have none."""
    said = settings.get("window_size")
    if said is None or isinstance(said, list):
        return {}
    left, every = digits(str(said).strip("()[]").split(",")[0]), settings.get("window_attn_skip_freq")
    if left is None or left < 0:
        raise settings.wrong("window_size", "two numbers of tokens")
    if every is not None and digits(str(every)) is None:
        notes.append(f"window_attn_skip_freq {plain(every, 40)} is not read; all layers are taken as local")
    return {"sliding_window": left + 1, "global_layer_every": digits(str(every))}


def _mean_attention_parameters(settings: StackSettings, notes: list[str]) -> int | None:
    """Parameters of attention in a layer, on average over linear and full ones; ``None`` where all are alike."""
    variant = settings.text(_VARIANT)
    if variant == "dsa":
        notes.append(f"{_VARIANT} dsa: the indexer of sparse attention is not counted, and attention is taken as full")
    if variant in (None, "dsa"):
        return None
    if variant not in _GATED_DELTA_NET:
        raise settings.wrong(_VARIANT, f"one of {', '.join((*_GATED_DELTA_NET, 'dsa'))}")
    full = _pattern(re.sub(r"\s", "", str(settings.get(_FREQUENCY))))  # 0 where a layer's attention is full
    every, layers = None if full else settings.count(_FREQUENCY), settings.count("num_layers")
    width, heads = settings.count("hidden_size"), settings.count("num_attention_heads")
    if not ((every or len(full) == layers) and width and heads and layers):
        raise settings.wrong(
            _VARIANT, f"beside a number or a list as {_FREQUENCY}, num_layers, hidden_size and attention heads"
        )
    linear = linear_attention_parameters(
        width, *(settings.count(key, int(_TABLE.defaults[key])) or 0 for key in _LINEAR)
    )
    groups = settings.count("num_query_groups", 1) or 1 if settings.flag("group_query_attention") else heads
    dim = settings.count("kv_channels", width // heads) or 0
    outputs = 3 if settings.flag("attention_output_gate") else 2
    attention, of_full = width * dim * (outputs * heads + 2 * groups), layers // every if every else full.count(0)
    shown = f"{plain(variant, 40)} in {layers - of_full} of {layers} layers"
    notes.append(f"{shown}: its scores are taken as those of attention")
    return round((linear * (layers - of_full) + attention * of_full) / layers)


def _experts(settings: StackSettings, width: int | None, notes: list[str]) -> dict[str, int]:
    """Shared experts by their width, and the layers that have experts."""
    shared, found = settings.count("moe_shared_expert_intermediate_size"), dict[str, int]()
    if shared and width:
        found["shared_experts"] = round(shared / width)
        if shared % width:
            notes.append(f"a shared expert {shared} wide is taken as {found['shared_experts']} of {width}")
    return found | (_expert_layers(settings, notes) if "moe_layer_freq" in settings else {})


def _expert_layers(settings: StackSettings, notes: list[str]) -> dict[str, int]:
    """Which layers have experts: every Nth, or a pattern like ``[0]*3+[1]*58``."""
    text = re.sub(r"[\s'\"()]", "", str(settings["moe_layer_freq"]))
    if (every := digits(text)) is not None:
        return {"moe_every": every}
    pattern = _pattern(text)
    first = pattern.index(1) if 1 in pattern else len(pattern)
    fitting = ((n, first + 1 - n) for n in range(1, first + 2) if pattern == _periodic(first + 1 - n, n, len(pattern)))
    every, leading = next(fitting, (None, 0))
    if first == len(pattern) or every is None:
        raise settings.wrong("moe_layer_freq", "a number or a pattern of dense layers followed by a period")
    layers = settings.count("num_layers")
    if layers is not None and layers != len(pattern):
        notes.append(f"moe_layer_freq has {len(pattern)} entries for {layers} layers")
    return {"leading_dense_layers": leading, "moe_every": every}


def _periodic(leading: int, every: int, layers: int) -> list[int]:
    """Dense layers, then experts in the last of every so many."""
    return [int(layer >= leading and (layer - leading + 1) % every == 0) for layer in range(layers)]


def _pattern(text: str) -> list[int]:
    """The layers of ``[0]*3+[1]*58``, 1 where they have experts; none where the text is no such list."""
    pattern: list[int] = []
    for part in (text[1:].removesuffix("]") if text.startswith("[[") else text).split("+"):
        found = _TERM.fullmatch(part)
        times = digits(found[2] or "1") if found else None
        period = [int(item) for item in found[1].split(",")] if found else []
        if times is None or len(pattern) + times * len(period) > _MOST_LAYERS:
            return []
        pattern += period * times
    return pattern


def _is_gpt2(settings: StackSettings) -> bool:
    """Whether the tokens are GPT-2's: of its kind of tokenizer, the default of ``pretrain_gpt.py``, and by the path of
    their file; of its kind also where the script does not say which file."""
    file = settings.text("vocab_file") or ""
    if "tokenizer_type" not in settings:
        return _GPT2.search(file) is not None or (not file and "merge_file" in settings)
    name = file.rpartition("/")[2]
    open_ = not name or "$" in name or "`" in name
    return settings.text("tokenizer_type") == _OF_GPT2 and (open_ or _GPT2.search(file) is not None)


def _tokens(settings: StackSettings, notes: list[str]) -> int | None:
    """Tokens of a vocabulary that is padded."""
    size = settings.count("vocab_size")
    if size is None and _is_gpt2(settings):
        size = _GPT2_TOKENS
    name = _TOKENIZER_FILE.sub("", settings.text("tokenizer_model") or "")
    if size is None and name and (known := find_architecture(name)):
        size = known.vocab
        notes.append(f"the vocabulary of {size} tokens is that of {plain(name, 60)}")
    if size is None and settings.text("tokenizer_type") == _OF_LLAMA:
        size = _LLAMA_TOKENS
        notes.append(f"the vocabulary is not stated, and taken as Llama 2's own of {size}: model.vocab=N says another")
    return size
