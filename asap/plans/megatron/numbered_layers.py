"""Layers that are recomputed by their number: Primus's ``recompute_layer_ids``, beside ``recompute_granularity: full``
and no method (AMD-AGI/Primus, ``backends/megatron/patches/recompute_layer_patches.py``)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.numbers import digits
from asap.core.text import plain

LAYER_IDS = "recompute_layer_ids"
_OF_ALL = "numbers of decoder layers, the first is 0, as in [0, 1, 2]"


def numbered_layers(arguments: Mapping[str, object], layers: int | None) -> frozenset[int]:
    """The decoder layers that are named; none where layers are recomputed otherwise.

    Args:
        arguments: by name.
        layers: decoder layers, where they are known. Layers that predict further tokens are counted after these.

    Raises:
        PlanError: something that is no number of a layer.
    """
    said = arguments.get(LAYER_IDS)
    if said is None or str(said).casefold() == "none":
        return frozenset()
    words = (
        list(map(str, said)) if isinstance(said, list | tuple) else str(said).strip("[]() ").replace(",", " ").split()
    )
    numbers = {word: digits(word) for word in words}
    if not numbers or any(number is None or number < 0 for number in numbers.values()):
        raise PlanError(
            f"{LAYER_IDS} must be {_OF_ALL}, not {plain(str(said), 40)!r}", hint=f"say it: {LAYER_IDS}=0,1,2"
        )
    found = {number for number in numbers.values() if number is not None}
    last = None if layers is None else layers - 1 + (digits(str(arguments.get("mtp_num_layers") or 0)) or 0)
    if last is not None and max(found) > last:
        raise PlanError(f"{LAYER_IDS} names layer {max(found)}, and the last one is {last}", hint="the first is 0")
    return frozenset(number for number in found if layers is None or number < layers)
