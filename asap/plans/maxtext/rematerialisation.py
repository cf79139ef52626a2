"""MaxText's rematerialisation policies and host offload, read into a plan and written from it.

Policies: ``get_remat_policy`` in MaxText's layers/nnx_decoders.py. ``custom`` keeps, moves to the host or recomputes
each tensor by itself; a plan says which named group that comes closest to.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.plan import Plan
from asap.plans.remat import MAXTEXT_POLICIES, Offload, Remat

_NEAREST = {Remat.SELECTIVE: "minimal_with_context"}
"""What is written for a group that MaxText does not have: it, too, keeps products and the context of attention."""

CUSTOM = "custom"
LAYER_INPUT = "decoder_layer_input"
TENSORS = (
    LAYER_INPUT, "context", "mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo", "moe_mlpwi_0", "moe_mlpwi_1", "moe_mlpwo",
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "out_proj", "query_wa_proj", "kv_wa_proj",
    "mla_q", "mla_kv", "attention_out", "indexer_cutoff_threshold", "engram",
)  # fmt: skip
"""What ``remat_policy=custom`` places: ``remat``, ``device`` or ``offload``."""

PLACES = ("remat", "device", "offload")

_ENTERING = {"query_proj", "qkv_proj", "mla_q"}
_SMALL = {"key_proj", "value_proj", "kv_proj", "mla_kv"}
"""Tensors before the products of attention scores: those of queries, and the small ones of shared heads."""
_LEAVING = {"out_proj", "attention_out", "context"}
"""Tensors after the products of attention scores."""

_HOST: dict[Offload, str] = {
    "optimizer": "optimizer_memory_host_offload",
    "parameters": "parameter_memory_host_offload",
}


def read_remat(settings: Mapping[str, object]) -> Remat | None:
    """The group of ``remat_policy``; ``None`` where it is not said.

    Raises:
        PlanError: MaxText has no such policy, or no such place for a tensor.
    """
    if "remat_policy" not in settings:
        return None
    policy = _policy(settings)
    if policy != CUSTOM:
        if policy not in MAXTEXT_POLICIES:
            hint = f"one of {', '.join(MAXTEXT_POLICIES)}, {CUSTOM}"
            raise PlanError(f"MaxText has no remat_policy {plain(policy, 40)!r}", hint=hint)
        return MAXTEXT_POLICIES[policy]
    kept = tensors_in(settings, "device") - {LAYER_INPUT}
    moved = tensors_in(settings, "offload") - {LAYER_INPUT}
    return Remat.OFFLOAD if moved & (_ENTERING | _SMALL | _LEAVING) else _kept(kept)


def tensors_in(settings: Mapping[str, object], place: str) -> frozenset[str]:
    """Tensors that ``remat_policy=custom`` keeps in a place; none under another policy.

    Raises:
        PlanError: a tensor is sent to a place that MaxText does not have.
    """
    if _policy(settings) != CUSTOM:
        return frozenset()
    places = {tensor: str(settings.get(tensor, _default_place(tensor))) for tensor in TENSORS}
    for tensor, where in places.items():
        if where not in PLACES:
            raise PlanError(f"{tensor} cannot be {plain(where, 40)!r}", hint=f"one of {', '.join(PLACES)}")
    return frozenset(tensor for tensor, where in places.items() if where == place)


def custom_note(settings: Mapping[str, object]) -> str | None:
    """One line that says what a per-tensor policy does and which group stands for it; ``None`` under another."""
    if _policy(settings) != CUSTOM:
        return None
    kept = sorted(tensors_in(settings, "device") - {LAYER_INPUT})
    moved = sorted(tensors_in(settings, "offload"))
    parts = [f"keeps {', '.join(kept)}"] if kept else []
    parts += [f"moves {', '.join(moved)} to the host"] if moved else []
    group = read_remat(settings) or Remat.FULL
    does = " and ".join(parts) or "recomputes everything"
    return f"remat_policy=custom {does}; it is predicted as remat={group.value}"


def _kept(tensors: frozenset[str]) -> Remat:
    """The policy that keeps about as much."""
    if any("mlpwi" in tensor for tensor in tensors):
        return Remat.MINIMAL
    entering, leaving = tensors & _ENTERING, tensors & _LEAVING
    if entering and leaving:
        return Remat.SAVE_DOT_EXCEPT_MLP
    return Remat.SAVE_QKV_PROJ if entering else Remat.SAVE_OUT_PROJ if leaving else Remat.FULL


def read_offload(settings: Mapping[str, object]) -> tuple[Offload, ...]:
    """What lies in host memory."""
    offload: list[Offload] = [what for what, key in _HOST.items() if _true(settings.get(key))]
    if LAYER_INPUT in tensors_in(settings, "offload") or read_remat(settings) is Remat.OFFLOAD:
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
    if plan.remat is None or _does_already(plan, current):
        return overrides
    if plan.remat is Remat.OFFLOAD or "activations" not in plan.offload:
        return overrides | {"remat_policy": _same_group(plan.remat, current)}
    if plan.remat is not Remat.FULL:
        raise PlanError("MaxText offloads activations with remat=full or remat=offload only")
    places = {
        tensor: "remat" for tensor in TENSORS if tensor != LAYER_INPUT and current.get(tensor, "remat") != "remat"
    }
    return overrides | places | {"remat_policy": CUSTOM, LAYER_INPUT: "offload"}


def _does_already(plan: Plan, current: Mapping[str, object]) -> bool:
    moves = "activations" in plan.offload
    return read_remat(current) is plan.remat and ("activations" in read_offload(current)) == moves


def _same_group(remat: Remat, current: Mapping[str, object]) -> str:
    policy = _policy(current)
    if MAXTEXT_POLICIES.get(policy) is remat:
        return policy
    return next((name for name, group in MAXTEXT_POLICIES.items() if group is remat), None) or _NEAREST[remat]


def _policy(settings: Mapping[str, object]) -> str:
    return str(settings.get("remat_policy") or "none").lower()


def _default_place(tensor: str) -> str:
    return "device" if tensor == LAYER_INPUT else "remat"


def _true(value: object) -> bool:
    return str(value).lower() == "true"
