"""What of LitGPT no table says: the devices of a node, and what one device leaves out."""

from collections.abc import Mapping

Settings = Mapping[str, object]
_ALL = ("auto", "-1", "None")


def prepared(settings: Settings, devices: int | None = None) -> dict[str, object]:
    """The settings with the devices of a node where all are taken, without recomputation on one, which has no FSDP."""
    found = dict(settings)
    nodes = int(str(found.get("num_nodes", 1)))
    if str(found.get("devices")) in _ALL and devices and not devices % nodes:
        found["devices"] = devices // nodes
    if devices == 1:
        found["activation_checkpointing"] = False
    return found
