"""MaxText's rematerialisation policies and host offload, read into a plan and written from it.

Policies: ``get_remat_policy`` in MaxText's layers/nnx_decoders.py. ``custom`` keeps, moves to the host or recomputes
each tensor by itself. ``none`` is no policy for ``jax.checkpoint``, around which scanned layers always are (since
February 2025): it recomputes everything, as ``full`` does. On an H100 both took 986 ms and 41.9 GiB (docs/optimize.md).
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.plan import Plan
from asap.plans.remat import (
    MAXTEXT_POLICIES,
    SAVED,
    Offload,
    Policy,
    RecomputedLayers,
    RecomputedModules,
    Remat,
    SavedTensors,
    Tensor,
    saved,
)
from asap.plans.remat import TENSORS as ALL_TENSORS
from asap.stacks.registry import spec

_TABLE = spec("maxtext")
_NEAREST = {Remat.SELECTIVE: "minimal_with_context", Remat.NONE: "minimal_with_context"}
"""What is written for a group that MaxText does not have: it keeps products and the context of attention."""

CUSTOM = "custom"
NO_POLICY = "none"
LAYER_INPUT = "decoder_layer_input"
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

_HOST: dict[Offload, str] = {
    what: word.keys[0] for moved in _TABLE.offload for what, word in zip(moved.what, moved.keys, strict=True)
}


def read_remat(settings: Mapping[str, object]) -> Policy | None:
    """What ``remat_policy`` does; ``None`` where it is not said.

    Raises:
        PlanError: MaxText has no such policy, or no such place for a tensor.
    """
    if "remat_policy" not in settings:
        return None
    policy = _policy(settings)
    if policy == NO_POLICY:
        return Remat.FULL if always_recomputes(settings) else Remat.NONE
    if policy == CUSTOM:
        device, host = _tensors(settings, "device"), _tensors(settings, "offload")
        return saved(device, host, LAYER_INPUT in _named(settings, "offload"))
    if policy not in MAXTEXT_POLICIES:
        hint = f"one of {', '.join(MAXTEXT_POLICIES)}, {CUSTOM}"
        raise PlanError(f"MaxText has no remat_policy {plain(policy, 40)!r}", hint=hint)
    return MAXTEXT_POLICIES[policy]


def always_recomputes(settings: Mapping[str, object]) -> bool:
    """Whether layers are scanned, so that no policy keeps everything."""
    return str(settings.get("scan_layers", True)).lower() != "false"


def as_written(policy: Policy | None, settings: Mapping[str, object]) -> Policy | None:
    """What MaxText reads where a plan has been written: the nearest group for one that it does not have."""
    if policy is Remat.NONE and not always_recomputes(settings):
        return policy
    nearest = _NEAREST.get(policy) if isinstance(policy, Remat) else None
    return MAXTEXT_POLICIES[nearest] if nearest else policy


def check_recomputation(plan: Plan, settings: Mapping[str, object]) -> None:
    """Raise a PlanError where a plan recomputes nothing, and MaxText does."""
    if plan.remat is Remat.NONE and always_recomputes(settings):
        raise PlanError(
            "MaxText recomputes scanned layers under every policy, also under remat_policy=none",
            hint="remat=minimal keeps all products, remat=qkv+context+out+gate+up attention as well",
        )


def remat_note(settings: Mapping[str, object]) -> str | None:
    """One line on a policy that does not do what its name says, or on tensors of a ``custom`` one that the prediction
    leaves out; ``None`` where there is nothing to say.
    """
    if "remat_policy" in settings and _policy(settings) == NO_POLICY and always_recomputes(settings):
        return "remat_policy=none recomputes all of a scanned layer, as full does; minimal_with_context keeps most"
    if _policy(settings) != CUSTOM:
        return None
    felt = {name for tensor in _NAMES for name in _names(tensor, settings)} | {LAYER_INPUT, *_FUSED, _UNFELT}
    left_out = [name for place in PLACES[1:] for name in _named(settings, place) if name not in felt]
    return f"remat_policy=custom: the prediction leaves out {', '.join(left_out)}" if left_out else None


def read_offload(settings: Mapping[str, object]) -> tuple[Offload, ...]:
    """What lies in host memory."""
    offload: list[Offload] = [what for what, key in _HOST.items() if _true(settings.get(key))]
    if _policy(settings) == CUSTOM and LAYER_INPUT in _named(settings, "offload"):
        offload.append("activations")
    return tuple(offload)


def write_remat(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    """Overrides for rematerialisation and offload; what the plan leaves unknown is left as it is.

    A policy of ``current`` that already does what the plan says is kept, tensor by tensor.

    Raises:
        PlanError: activations are offloaded under a policy that MaxText cannot combine with it.
    """
    overrides = {
        key: str(what in plan.offload).lower()
        for what, key in _HOST.items()
        if what in plan.offload or _true(current.get(key))
    }
    moves = "activations" in read_offload(current)
    if plan.remat is None or (read_remat(current) == plan.remat and moves == plan.moves_inputs):
        return overrides
    if plan.remat is Remat.NONE and not plan.moves_inputs and not always_recomputes(current):
        return overrides | {"remat_policy": NO_POLICY}
    name = _named_policy(plan, current)
    return overrides | ({"remat_policy": name} if name else _custom(plan, current))


def _named_policy(plan: Plan, current: Mapping[str, object]) -> str | None:
    """The name of a policy that does what a plan says, the one that is set if it does; ``None`` if none does."""
    if plan.moves_inputs:
        return None
    names = [_policy(current), *MAXTEXT_POLICIES]
    found = next((name for name in names if MAXTEXT_POLICIES.get(name) == plan.remat), None)
    return found or (_NEAREST.get(plan.remat) if isinstance(plan.remat, Remat) else None)


def _custom(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    if isinstance(plan.remat, RecomputedLayers | RecomputedModules):
        raise PlanError(f"MaxText has no recomputation like remat={plan.remat}", hint="full, or a policy by tensor")
    tensors = plan.remat if isinstance(plan.remat, SavedTensors) else SAVED.get(plan.remat or Remat.FULL)
    if tensors is None:
        raise PlanError(f"MaxText does not offload activations with remat={plan.remat}", hint="remat=full does")
    wanted = {LAYER_INPUT: "offload" if plan.moves_inputs else "device"}
    places: dict[Tensor, str] = dict.fromkeys(_NAMES, "remat")
    places |= dict.fromkeys(tensors.host, "offload") | dict.fromkeys(tensors.device, "device")
    for name, parts in _fused(current).items():
        if any(places[part] != _place(name, current) for part in parts):
            wanted[name] = "remat"
    for tensor, place in places.items():
        if _place_of(tensor, {**current, **wanted}) != place:
            wanted |= dict.fromkeys(_names(tensor, current), "remat")
            wanted |= {_names(tensor, current)[0]: place}
    return {"remat_policy": CUSTOM} | {name: place for name, place in wanted.items() if _place(name, current) != place}


def _tensors(settings: Mapping[str, object], place: str) -> list[Tensor]:
    """Tensors of a plan that ``custom`` keeps in a place."""
    return [tensor for tensor in _NAMES if _place_of(tensor, settings) == place]


def _place_of(tensor: Tensor, settings: Mapping[str, object]) -> str:
    """Where a tensor lies; of several names the one that saves it counts, as jax.checkpoint takes them."""
    fused = [name for name, parts in _fused(settings).items() if tensor in parts]
    places = [_place(name, settings) for name in (*_names(tensor, settings), *fused)]
    return next((place for place in ("device", "offload") if place in places), "remat")


def _fused(settings: Mapping[str, object]) -> dict[str, tuple[Tensor, ...]]:
    """Names of several tensors at once, where a setting fuses them."""
    return {name: parts for name, (setting, parts) in _FUSED.items() if _true(settings.get(setting))}


def _names(tensor: Tensor, settings: Mapping[str, object]) -> tuple[str, ...]:
    """MaxText's names of a tensor; an MLP without a gate has one name."""
    activations = settings.get("mlp_activations")
    gated = not isinstance(activations, list | tuple) or len(activations) != 1
    return _NAMES[tensor] if gated or tensor != "up" else ("mlpwi", *_NAMES[tensor][1:])


def _named(settings: Mapping[str, object], place: str) -> list[str]:
    return [name for name in TENSORS if _place(name, settings) == place]


def _place(name: str, settings: Mapping[str, object]) -> str:
    place = str(settings.get(name, "device" if name == LAYER_INPUT else "remat"))
    if place not in PLACES:
        raise PlanError(f"{name} cannot be {plain(place, 40)!r}", hint=f"one of {', '.join(PLACES)}")
    return place


def _policy(settings: Mapping[str, object]) -> str:
    return str(settings.get("remat_policy") or NO_POLICY).lower()


def _true(value: object) -> bool:
    return str(value).lower() == "true"
