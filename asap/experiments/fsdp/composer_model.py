"""The models of LLM Foundry (``llmfoundry/models/mpt/configuration_mpt.py``) and OLMo (``olmo/config.py``)."""

import re

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.named_model import NO_MODEL, name_at_end, read_named_model
from asap.experiments.settings.stack_settings import StackSettings
from asap.models import Architecture

_NAMED = "model.pretrained_model_name_or_path"
_OTHER_MODELS = re.compile(r"t5|prefix|bert|clip|diffusion")
_GATED, _PLAIN = ("mptglu", "mptgeglu"), ("mptmlp", "te_ln_mlp")


def foundry_model(said: StackSettings) -> tuple[Architecture | None, tuple[str, ...]]:
    """The architecture, with notes.

    Raises:
        ConfigError: it is another model than a decoder, or has layers of a kind that is not read.
    """
    name = said.text("model.name", "") or ""
    if _OTHER_MODELS.search(name):
        raise ConfigError(f"trains {plain(name, 60)}; only decoders are read", where=said.where())
    if (named := said.text(_NAMED)) is not None:
        found = name_at_end(named)
        return read_named_model(found) if found else (None, (NO_MODEL,))
    if not all(f"model.{key}" in said for key in ("d_model", "n_heads", "n_layers")):
        return None, (NO_MODEL,)
    kind = said.text("model.ffn_config.ffn_type", "mptmlp")
    if kind not in (*_GATED, *_PLAIN):
        raise ConfigError(f"model.ffn_config.ffn_type={plain(kind, 40)} is not read", where=said.where())
    width, heads = said.count("model.d_model") or 1, said.count("model.n_heads") or 1
    inner = said.count("model.ffn_config.ffn_hidden_size", said.count("model.intermediate_size"))
    learned = said.flag("model.learned_pos_emb", "model.intermediate_size" not in said)
    moved = said.flag("model.attn_config.alibi") or said.flag("model.attn_config.rope")
    return Architecture(
        layers=said.count("model.n_layers"),
        d_model=width,
        heads=heads,
        kv_heads=said.count("model.attn_config.kv_n_heads", heads),
        head_dim=said.count("model.attn_config.head_dim", width // heads),
        d_ff=inner or int((said.positive_number("model.expansion_ratio") or 4) * width),
        vocab=said.count("model.vocab_size"),
        gated_mlp=kind in _GATED or "model.intermediate_size" in said,
        tied_embeddings=said.flag("model.tie_word_embeddings", "model.intermediate_size" not in said),
        learned_positions=said.whole("model.max_seq_len") or 0 if learned and not moved else 0,
    ), ()


def olmo_model(said: StackSettings) -> tuple[Architecture, tuple[str, ...]]:
    """The architecture; the width of an MLP counts both of its inner matrices where it is gated.

    Raises:
        ConfigError: experts of a kind that is not read.
    """
    for key in ("model.moe_shared_expert", "model.moe_interleave"):
        if said.flag(key):
            raise ConfigError(f"{key} is not read", where=said.where(), hint="give the model's config.json as --config")
    block = said.text("model.block_type", "sequential")
    experts = block == "moe"
    width, heads = said.count("model.d_model") or 1, said.count("model.n_heads") or 1
    gated = said.text("model.activation_type", "swiglu") == "swiglu"
    whole = said.count("model.mlp_hidden_size") or (said.count("model.mlp_ratio", 4) or 4) * width
    inner = whole // 2 if gated else whole
    one = 1 if said.flag("model.multi_query_attention") else heads
    placed = said.flag("model.rope") or said.flag("model.alibi")
    return Architecture(
        layers=said.count("model.n_layers"),
        d_model=width,
        heads=heads,
        kv_heads=said.count("model.n_kv_heads", one),
        head_dim=width // heads,
        d_ff=inner,
        vocab=said.count("model.embedding_size", said.count("model.vocab_size")),
        gated_mlp=gated,
        tied_embeddings=said.flag("model.weight_tying", True),
        learned_positions=0 if placed else said.whole("model.max_sequence_length") or 0,
        parallel_block=block == "parallel",
        experts=(said.count("model.moe_num_experts", 8) or 0) if experts else 0,
        experts_per_token=(said.count("model.moe_top_k", 2) or 0) if experts else 0,
        expert_d_ff=inner if experts else None,
    ), ()
