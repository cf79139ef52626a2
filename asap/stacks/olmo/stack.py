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
    """The width of the MLP, which counts both of its inner matrices where it is gated."""
    ratio, width = settings.get("model.mlp_ratio", 4), settings.get("model.d_model", 0)
    whole = int(str(settings.get("model.mlp_hidden_size", int(str(ratio)) * int(str(width)))))
    return {"d_ff": whole // 2 if settings.get("model.activation_type", "swiglu") == "swiglu" else whole}
