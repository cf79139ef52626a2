"""The decoder that Megatron-LM's arguments describe; what is not said has the default of its arguments."""

import ast
import math
import re
from typing import Any

from pydantic import ValidationError

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.files.documents import validation_reason
from asap.experiments.shell import has_substitution
from asap.models import Architecture, find_architecture
from asap.models.parameters import linear_attention_parameters
from asap.stacks.stack_settings import StackSettings

VARIANT, FREQUENCY = "experimental_attention_variant", "linear_attention_freq"
_LINEAR = {
    "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}  # fmt: skip
"""Arguments of the gated delta net with their defaults (``transformer_config.py``)."""
_GATED_DELTA_NET = ("gdn", "gdn2", "gated_delta_net")


def mean_attention_parameters(settings: StackSettings, notes: list[str]) -> int | None:
    """Parameters of attention in a layer, on average over linear and full ones; ``None`` where all are alike.

    Raises:
        ConfigError: a variant that is not read, or layers that are no period.
    """
    variant = settings.text(VARIANT)
    if variant is None:
        return None
    if variant == "dsa":
        notes.append(f"{VARIANT} dsa: the indexer of sparse attention is not counted, and attention is taken as full")
        return None
    if variant not in _GATED_DELTA_NET:
        raise settings.wrong(VARIANT, f"one of {', '.join((*_GATED_DELTA_NET, 'dsa'))}")
    every = settings.count(FREQUENCY)
    width, heads = settings.count("hidden_size"), settings.count("num_attention_heads")
    layers = settings.count("num_layers")
    if every is None or not (width and heads and layers):
        raise settings.wrong(VARIANT, f"beside a number as {FREQUENCY}, num_layers, hidden_size and attention heads")
    key_heads, key_dim, value_heads, value_dim, kernel = (
        settings.count(key, value) or 0 for key, value in _LINEAR.items()
    )
    linear = linear_attention_parameters(width, key_heads, key_dim, value_heads, value_dim, kernel)
    groups = settings.count("num_query_groups", 1) or 1 if settings.flag("group_query_attention") else heads
    dim = settings.count("kv_channels", width // heads) or 0
    outputs = 3 if settings.flag("attention_output_gate") else 2
    full = width * dim * (outputs * heads + 2 * groups)
    known = plain(variant, 40)
    notes.append(
        f"{known} in {layers - layers // every} of {layers} layers: its scores are taken as those of attention"
    )
    return round((linear * (layers - layers // every) + full * (layers // every)) / layers)


GPT2_TOKENS = 50_257
_OF_LLAMA = "Llama2Tokenizer"
_TOKENIZER_FILE = re.compile(r"/tokenizer\.(?:model|json)$")
"""A file in the folder of the model that it is of."""
_GPT2 = re.compile(r"gpt-?2", re.IGNORECASE)
_HYBRID = ("hybrid_override_pattern", "hybrid_layer_pattern", "is_hybrid_model")
OTHER_MODELS = {
    "language_model_type": "a language model with an encoder of images",
    "vision_model_type": "a language model with an encoder of images",
    "retro_add_retriever": "a decoder with retrieval",
    "use_lf_gate": "a decoder with convolutions in its attention (localized filtering)",
}
"""Arguments of models that are no decoder alone (``examples/multimodal``, ``pretrain_retro.py``, Yuan 2.0)."""
_GATED = ("swiglu", "quick_geglu")
_TERM = re.compile(r"\[([01](?:,[01])*)\](?:\*(\d+))?")
_MLA = {  # field of an Architecture → argument and its default (MLATransformerConfig)
    "q_lora_rank": ("q_lora_rank", None),
    "kv_lora_rank": ("kv_lora_rank", 512),
    "qk_nope_head_dim": ("qk_head_dim", 128),
    "qk_rope_head_dim": ("qk_pos_emb_head_dim", 64),
    "v_head_dim": ("v_head_dim", 128),
}
_SOURCES = {
    "layers": "num_layers", "d_model": "hidden_size", "d_ff": "ffn_hidden_size", "heads": "num_attention_heads",
    "kv_heads": "num_query_groups", "head_dim": "kv_channels", "experts": "num_experts",
    "experts_per_token": "moe_router_topk", "expert_d_ff": "moe_ffn_hidden_size", "moe_every": "moe_layer_freq",
    "tied_embeddings": "untie_embeddings_and_output_weights", "gated_mlp": "swiglu", "sliding_window": "window_size",
    "mtp_layers": "mtp_num_layers",
}  # fmt: skip


SHAPES = frozenset(
    [
        *_SOURCES.values(), *_GATED, "group_query_attention", "attention_head_type", "num_key_value_heads",
        "multi_latent_attention", "parallel_attention", "qk_layernorm",
        "position_embedding_type", "use_rotary_position_embeddings",
        *(argument for argument, _ in _MLA.values()),
    ]
)  # fmt: skip
"""Arguments that decide the architecture."""


def architecture_of(settings: StackSettings) -> tuple[Architecture, dict[str, str], tuple[str, ...]]:
    """The model, where its fields came from, and what a reader should know.

    Raises:
        ConfigError: the arguments make no decoder that is read.
    """
    if hybrid := next((key for key in _HYBRID if settings.get(key) not in (None, False)), None):
        reason = f"{hybrid}: layers that are not attention and MLP are not modelled"
        raise ConfigError(reason, where=settings.where(hybrid))
    if other := next((key for key in OTHER_MODELS if settings.get(key) not in (None, False)), None):
        reason = f"{other}: trains {OTHER_MODELS[other]}; only decoders are read"
        raise ConfigError(reason, where=settings.where(other))
    notes: list[str] = []
    fields = _shapes(settings) | _attention(settings, notes) | _experts(settings, notes)
    fields["vocab"] = _vocabulary(settings, notes)
    fields["attention_parameters"] = mean_attention_parameters(settings, notes)
    fields["mtp_layers"] = settings.whole("mtp_num_layers")
    try:
        model = Architecture.model_validate({key: value for key, value in fields.items() if value is not None})
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=settings.where()) from error
    sources = {
        f"model.{field}": settings.source(argument) if argument in settings else f"Megatron-LM's default of {argument}"
        for field, argument in _SOURCES.items()
        if getattr(model, field) not in (None, 0)
    }
    return model, sources, tuple(notes)


def _shapes(settings: StackSettings) -> dict[str, Any]:
    width, heads = settings.count("hidden_size"), settings.count("num_attention_heads")
    rotary = settings.flag("use_rotary_position_embeddings")
    positions = not rotary and settings.text("position_embedding_type", "learned_absolute") == "learned_absolute"
    return {
        "layers": settings.count("num_layers"),
        "d_model": width,
        "d_ff": mlp_width(settings),
        "heads": heads,
        "head_dim": settings.count("kv_channels", width // heads if width and heads and width % heads == 0 else None),
        "gated_mlp": _is_gated(settings),
        "tied_embeddings": not settings.flag("untie_embeddings_and_output_weights"),
        "parallel_block": settings.flag("parallel_attention"),
        "qk_norm": settings.flag("qk_layernorm"),
        "learned_positions": settings.count("max_position_embeddings") if positions else 0,
    }


def mlp_width(settings: StackSettings) -> int | None:
    """Hidden width of an MLP, by default after that of the model; raises ConfigError where one is no number."""
    width = settings.count("hidden_size")
    gated = _is_gated(settings)
    default = None if width is None else int(4 * width * 2 / 3 / 64) * 64 if gated else 4 * width
    return settings.count("ffn_hidden_size", default)


def _is_gated(settings: StackSettings) -> bool:
    return any(settings.flag(key) for key in _GATED)


def _attention(settings: StackSettings, notes: list[str]) -> dict[str, Any]:
    heads = settings.count("num_attention_heads")
    grouped = settings.flag("group_query_attention")
    of_forks = 1 if settings.text("attention_head_type") == "multiquery" else settings.count("num_key_value_heads")
    fields: dict[str, Any] = {"kv_heads": settings.count("num_query_groups", 1) if grouped else of_forks or heads}
    if settings.flag("multi_latent_attention"):
        fields |= {field: settings.count(argument, default) for field, (argument, default) in _MLA.items()}
    if window := settings.text("window_size") if not isinstance(settings.get("window_size"), list) else None:
        left = digits(window.strip("()[]").split(",")[0])
        if left is None or left < 0:
            raise settings.wrong("window_size", "two numbers of tokens")
        fields["sliding_window"] = left + 1
        every = settings.get("window_attn_skip_freq")
        if every is not None and (number := digits(str(every))) is not None:
            fields["global_layer_every"] = number
        elif every is not None:
            notes.append(f"window_attn_skip_freq {plain(every, 40)} is not read; all layers are taken as local")
    return fields


def _experts(settings: StackSettings, notes: list[str]) -> dict[str, Any]:
    experts = settings.count("num_experts")
    if experts in (None, 1):
        return {}
    width = settings.count("moe_ffn_hidden_size", mlp_width(settings))
    fields: dict[str, Any] = {
        "experts": experts,
        "experts_per_token": settings.count("moe_router_topk", 2),
        "expert_d_ff": width,
    }
    shared = settings.count("moe_shared_expert_intermediate_size")
    if shared and width:
        fields["shared_experts"] = round(shared / width)
        if shared % width:
            notes.append(f"a shared expert {shared} wide is taken as {fields['shared_experts']} of {width}")
    if "moe_layer_freq" in settings:
        fields |= _expert_layers(settings, notes)
    return fields


def _expert_layers(settings: StackSettings, notes: list[str]) -> dict[str, int]:
    """Which layers have experts: every Nth, or a pattern like ``[0]*3+[1]*58``."""
    value = settings["moe_layer_freq"]
    text = re.sub(r"[\s'\"()]", "", str(value))
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


_MOST_LAYERS = 10_000


def _pattern(text: str) -> list[int]:
    pattern: list[int] = []
    if text.startswith("[") and "*" not in text:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return []
        return [int(item) for item in found if item in (0, 1)] if isinstance(found, list) else []
    if text.startswith("[["):
        text = text[1:].removesuffix("]")
    for part in text.split("+"):
        found = _TERM.fullmatch(part)
        if found is None:
            return []
        times = digits(found[2] or "1")
        period = [int(item) for item in found[1].split(",")]
        if times is None or len(pattern) + times * len(period) > _MOST_LAYERS:
            return []
        pattern += period * times
    return pattern


def _is_gpt2(settings: StackSettings) -> bool:
    """Whether the tokens are GPT-2's: of its kind of tokenizer, the default of ``pretrain_gpt.py``, and by the path of
    their file; of its kind also where the script does not say which file."""
    file = settings.text("vocab_file") or ""
    if "tokenizer_type" not in settings:
        return _GPT2.search(file) is not None
    name = file.rpartition("/")[2]
    open_ = has_substitution(name) or not name
    return settings.text("tokenizer_type") == "GPT2BPETokenizer" and (open_ or _GPT2.search(file) is not None)


def _vocabulary(settings: StackSettings, notes: list[str]) -> int | None:
    """Tokens as Megatron-LM pads them: to a multiple of ``make_vocab_size_divisible_by`` times the tensor degree."""
    if padded := settings.count("padded_vocab_size"):
        return padded
    size = settings.count("vocab_size")
    if size is None and _is_gpt2(settings):
        size = GPT2_TOKENS
    name = _TOKENIZER_FILE.sub("", settings.text("tokenizer_model") or "")
    if size is None and name and (known := find_architecture(name)):
        size = known.vocab
        notes.append(f"the vocabulary of {size} tokens is that of {plain(name, 60)}")
    if size is None:
        own = "; Llama 2's own has 32000" if settings.text("tokenizer_type") == _OF_LLAMA else ""
        notes.append(f"the vocabulary is not said (the tokenizer has it{own}): add model.vocab=…")
        return None
    step = (settings.count("make_vocab_size_divisible_by", 128) or 1) * (
        settings.count("tensor_model_parallel_size") or 1
    )
    return step * math.ceil(size / step)
