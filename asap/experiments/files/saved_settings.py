"""Settings within others: Weights & Biases' ``config.yaml`` wraps each in a mapping, a run of MosaicML's all in one."""

from collections.abc import Mapping
from typing import Any

_OWN = ("_wandb", "wandb_version")
_VALUE = "value"


def without_wrapping(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of ``config.yaml`` (``key: {desc: …, value: …}``) and of a run of MosaicML's, as the program had
    them; any other as it is."""
    own = {key: value for key, value in values.items() if key not in _OWN}
    if "command" in values and isinstance(run := values.get("parameters"), dict):
        return {**run, "compute": values.get("compute")}
    wrapped = own and len(own) < len(values) and all(isinstance(one, dict) and _VALUE in one for one in own.values())
    return {key: one[_VALUE] for key, one in own.items()} if wrapped else dict(values)
