"""Settings that change time or memory and that the prediction does not use: said, never ignored."""

from asap.experiments.maxtext.settings import MaxTextSettings, SettingLayer

_DEFAULTS: dict[str, object] = {
    "batch_split_factor": 1,
    "custom_mesh": "",
    "enable_diloco": False,
    "grad_dtype": "float32",
    "num_moe_token_chunks": 1,
    "pipeline_fsdp_ag_once": False,
    "pipeline_fsdp_ag_per_repeat": False,
    "pipeline_parallel_layers": -1,
    "shard_exp_on_fsdp": False,
    "fsdp_shard_on_exp": False,
    "use_2d_fsdp_sharding": False,
    "use_batch_split_schedule": False,
}
"""Key → what MaxText's base.yml says (commit e591f30c), under which the prediction holds."""


def not_predicted(settings: MaxTextSettings) -> tuple[str, ...]:
    """One note that names them all; none where all are as MaxText has them."""
    found = [f"{key}={settings[key]}" for key, usual in _DEFAULTS.items() if _differs(settings, key, usual)]
    return (f"the prediction does not use {', '.join(found)}",) if found else ()


def _differs(settings: MaxTextSettings, key: str, usual: object) -> bool:
    if settings.layer(key) is SettingLayer.DEFAULT:
        return False
    value = settings[key]
    if isinstance(value, bool | int | float):
        return value != usual
    return str(value or "") != usual
