"""What of LLM Foundry no table says: when FSDP shards, and MPT's shapes (``llmfoundry/models/mpt``)."""

from collections.abc import Mapping

Settings = Mapping[str, object]
_SHARDS, _FOUND = "fsdp_config.", "auto"
_BATCH = "device_train_microbatch_size"


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
    """The width of MPT's MLP."""
    by_ratio = int(float(str(settings.get("model.expansion_ratio", 4))) * int(str(settings["model.d_model"])))
    said = settings.get("model.ffn_config.ffn_hidden_size", settings.get("model.intermediate_size"))
    return {"d_ff": said or by_ratio}
