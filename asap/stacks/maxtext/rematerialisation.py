"""MaxText's rematerialisation policies and host offload, read into a plan and written from it.

Policies: ``get_remat_policy`` in MaxText's layers/nnx_decoders.py. ``custom`` keeps, moves to the host or recomputes
each tensor by itself. ``none`` is no policy for ``jax.checkpoint``, around which scanned layers always are (since
February 2025): it recomputes everything, as ``full`` does. On an H100 both took 986 ms and 41.9 GiB (docs/optimize.md).
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.plan import Plan
from asap.plans.remat import NAMED_POLICIES, SAVED, Offload, Policy, Remat, SavedTensors, Tensor, saved
from asap.plans.remat import TENSORS as ALL_TENSORS
from asap.stacks.maxtext.architecture import is_gated
from asap.stacks.reading import is_on, offloaded
from asap.stacks.registry import spec

_TABLE = spec("maxtext")
_POLICY, _CUSTOM, _NO_POLICY, _LAYER_INPUT = "remat_policy", "custom", "none", "decoder_layer_input"
TENSORS = _TABLE.names["tensors"]
"""What ``remat_policy=custom`` places: ``remat``, ``device`` or ``offload``."""
PLACES = ("remat", "device", "offload")
_NAMES: dict[Tensor, tuple[str, ...]] = {tensor: _TABLE.names[f"tensor.{tensor}"] for tensor in ALL_TENSORS}
_FUSED: dict[str, tuple[str, tuple[Tensor, ...]]] = {
    "qkv_proj": ("fused_qkv", ("query", "key", "value")),
    "mlpwi": ("fused_mlp", ("gate", "up")),
}
"""Names of several tensors at once, under the setting that fuses them; without it they are of nothing."""
_UNFELT = "kv_proj"
"""Name of a tensor that a step does not have."""

Settings = Mapping[str, object]


def remat_of(settings: Settings) -> Policy | None:
    """What ``remat_policy`` does; ``None`` where it is not said.

    Raises:
        PlanError: MaxText has no such policy, or no such place for a tensor.
    """
    policy = _policy(settings)
    if _POLICY not in settings:
        return None
    if policy == _NO_POLICY:
        return Remat.FULL if always_recomputes(settings) else Remat.NONE
    if policy == _CUSTOM:
        device, host = ([one for one in _NAMES if _place_of(one, settings) == place] for place in PLACES[1:])
        return saved(device, host, _place(_LAYER_INPUT, settings) == "offload")
    if policy not in NAMED_POLICIES:
        hint = f"one of {', '.join(NAMED_POLICIES)}, {_CUSTOM}"
        raise PlanError(f"MaxText has no remat_policy {plain(policy, 40)!r}", hint=hint)
    return NAMED_POLICIES[policy]


def always_recomputes(settings: Settings) -> bool:
    """Whether layers are scanned, so that no policy keeps everything."""
    return str(settings.get("scan_layers", True)).lower() != "false"


def tensors_left_out(settings: Settings) -> tuple[str, ...]:
    """Names that a ``custom`` policy keeps and the prediction leaves out."""
    felt = {name for tensor in _NAMES for name in _names(tensor, settings)} | {_LAYER_INPUT, *_FUSED, _UNFELT}
    kept = (name for place in PLACES[1:] for name in TENSORS if _place(name, settings) == place)
    return tuple(name for name in kept if name not in felt) if _policy(settings) == _CUSTOM else ()


def offload_of(settings: Settings) -> tuple[Offload, ...]:
    """What lies in host memory."""
    moves = _policy(settings) == _CUSTOM and _place(_LAYER_INPUT, settings) == "offload"
    return (*offloaded(_TABLE, settings), *(("activations",) if moves else ()))


def write_remat(plan: Plan, current: Settings) -> dict[str, str]:
    """Overrides for rematerialisation and offload; what the plan leaves unknown is left as it is.

    A policy of ``current`` that already does what the plan says is kept, tensor by tensor.

    Raises:
        PlanError: MaxText has no such policy, or cannot offload activations under it.
    """
    moved = {word.keys[0]: str({*one.what} <= {*plan.offload}).lower() for one in _TABLE.offload for word in one.keys}
    overrides = {key: value for key, value in moved.items() if value == "true" or is_on(current, key)}
    moves = "activations" in offload_of(current)
    if plan.remat is None or (remat_of(current) == plan.remat and moves == plan.moves_inputs):
        return overrides
    if plan.remat is Remat.NONE and not plan.moves_inputs:
        if always_recomputes(current):
            raise PlanError(
                "MaxText recomputes scanned layers under every policy, also under remat_policy=none",
                hint="remat=minimal keeps all products, remat=qkv+context+out+gate+up attention as well",
            )
        return overrides | {_POLICY: _NO_POLICY}
    names = [] if plan.moves_inputs else [_policy(current), *NAMED_POLICIES]
    name = next((name for name in names if NAMED_POLICIES.get(name) == plan.remat), None)
    return overrides | ({_POLICY: name} if name else _custom(plan, plan.remat, current))


def _custom(plan: Plan, policy: Policy, current: Settings) -> dict[str, str]:
    tensors = policy if isinstance(policy, SavedTensors) else SAVED.get(policy) if isinstance(policy, Remat) else None
    if tensors is None and plan.moves_inputs:
        raise PlanError(f"MaxText does not offload activations with remat={policy}", hint="remat=full does")
    if tensors is None:
        raise PlanError(f"MaxText has no recomputation like remat={policy}", hint="full, or a policy by tensor")
    wanted = {_LAYER_INPUT: "offload" if plan.moves_inputs else "device"}
    places: dict[Tensor, str] = dict.fromkeys(_NAMES, "remat")
    places |= dict.fromkeys(tensors.host, "offload") | dict.fromkeys(tensors.device, "device")
    for name, parts in _fused(current).items():
        if any(places[part] != _place(name, current) for part in parts):
            wanted[name] = "remat"
    for tensor, place in places.items():
        if _place_of(tensor, {**current, **wanted}) != place:
            wanted |= dict.fromkeys(_names(tensor, current), "remat")
            wanted |= {_names(tensor, current)[0]: place}
    return {_POLICY: _CUSTOM} | {name: place for name, place in wanted.items() if _place(name, current) != place}


def _place_of(tensor: Tensor, settings: Settings) -> str:
    """Where a tensor lies; of several names the one that saves it counts, as jax.checkpoint takes them."""
    fused = [name for name, parts in _fused(settings).items() if tensor in parts]
    places = [_place(name, settings) for name in (*_names(tensor, settings), *fused)]
    return next((place for place in ("device", "offload") if place in places), "remat")


def _fused(settings: Settings) -> dict[str, tuple[Tensor, ...]]:
    """Names of several tensors at once, where a setting fuses them."""
    return {name: parts for name, (setting, parts) in _FUSED.items() if is_on(settings, setting)}


def _names(tensor: Tensor, settings: Settings) -> tuple[str, ...]:
    """MaxText's names of a tensor; an MLP without a gate has one product before its activation, and one name."""
    return ("mlpwi", *_NAMES[tensor][1:]) if tensor in ("gate", "up") and not is_gated(settings) else _NAMES[tensor]


def _place(name: str, settings: Settings) -> str:
    place = str(settings.get(name, "device" if name == _LAYER_INPUT else "remat"))
    if place not in PLACES:
        raise PlanError(f"{name} cannot be {plain(place, 40)!r}", hint=f"one of {', '.join(PLACES)}")
    return place


def _policy(settings: Settings) -> str:
    return str(settings.get(_POLICY) or _NO_POLICY).lower()
