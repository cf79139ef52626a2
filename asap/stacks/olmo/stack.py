"""What of OLMo no table says: replicas without FSDP, and the width of its MLP (``olmo/config.py``)."""

from collections.abc import Mapping

Settings = Mapping[str, object]


def prepared(settings: Settings, devices: int | None = None) -> dict[str, object]:
    """The settings with the group of devices that a number of replicas leaves; ``ddp`` copies parameters."""
    replicas = int(str(settings.get("fsdp.hybrid_sharding_num_model_replicas", 0)))
    found = dict(settings)
    if replicas and devices and not devices % replicas:
        found["nproc_per_node"] = devices // replicas
    return found | ({"fsdp.sharding_strategy": "NO_SHARD"} if found.get("distributed_strategy") == "ddp" else {})


def model_fields(settings: Settings) -> dict[str, object]:
    """The MLP, whose width counts both of its inner matrices where it is gated; keys, positions."""

    def said(name: str, default: object) -> str:
        return str(settings.get(f"model.{name}", default)).casefold()

    gated = said("activation_type", "swiglu") == "swiglu"
    whole = int(said("mlp_hidden_size", int(said("mlp_ratio", 4)) * int(said("d_model", 0))))
    inner = whole // 2 if gated else whole
    placed = "true" in (said("rope", False), said("alibi", False))
    return {
        "kv_heads": settings.get("model.n_kv_heads", 1 if said("multi_query_attention", False) == "true" else None),
        "d_ff": inner,
        "gated_mlp": gated,
        "learned_positions": 0 if placed else int(said("max_sequence_length", 0)),
        "parallel_block": said("block_type", "sequential") == "parallel",
    }
