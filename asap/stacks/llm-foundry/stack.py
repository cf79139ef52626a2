"""What of LLM Foundry no table says: when FSDP shards, and MPT's shapes (``llmfoundry/models/mpt``)."""

from collections.abc import Mapping

from asap.stacks.reading import is_on

Settings = Mapping[str, object]
_SHARDS, _FOUND = "fsdp_config.", "auto"
_BATCH = "device_train_microbatch_size"
_GATED = ("mptglu", "mptgeglu")


def prepared(settings: Settings, devices: int | None = None) -> dict[str, object]:
    """The settings without recomputation where FSDP is off, which does it, and with its groups of devices."""
    found = {key: value for key, value in settings.items() if (key, value) != (_BATCH, _FOUND)}
    if not any(key.startswith(_SHARDS) for key in settings):
        found[f"{_SHARDS}sharding_strategy"] = "NO_SHARD"
    replicas = int(str(found.get("fsdp_config.hybrid_sharding_num_model_replicas", 0)))
    if replicas and devices and not devices % replicas:
        found["nproc"] = devices // replicas
    return found


def model_fields(settings: Settings) -> dict[str, object]:
    """MPT's MLP, its embedding and its positions."""
    width, inner = int(str(settings["model.d_model"])), settings.get("model.intermediate_size")
    kind = settings.get("model.ffn_config.ffn_type", "mptmlp")
    by_ratio = int(float(str(settings.get("model.expansion_ratio", 4))) * width)
    learned = str(settings.get("model.learned_pos_emb", inner is None)).casefold() == "true"
    moved = any(is_on(settings, f"model.attn_config.{way}") for way in ("alibi", "rope"))
    return {
        "d_ff": settings.get("model.ffn_config.ffn_hidden_size", inner) or by_ratio,
        "gated_mlp": kind in _GATED or inner is not None,
        "tied_embeddings": str(settings.get("model.tie_word_embeddings", inner is None)).casefold() == "true",
        "learned_positions": settings.get("model.max_seq_len", 0) if learned and not moved else 0,
    }
