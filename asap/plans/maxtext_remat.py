"""MaxText's rematerialisation policies and host offload, read into a plan and written from it.

Policies: ``get_remat_policy`` in MaxText's layers/nnx_decoders.py; ``custom`` places each tensor by itself.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Offload, Plan, Remat

POLICIES: dict[str, Remat] = {
    "none": Remat.NONE,
    "minimal": Remat.MINIMAL,
    "minimal_flash": Remat.MINIMAL,
    "minimal_with_context": Remat.MINIMAL,
    "minimal_with_quantization": Remat.MINIMAL,
    "minimal_with_context_and_quantization": Remat.MINIMAL,
    "save_dot_except_mlp": Remat.SAVE_DOT_EXCEPT_MLP,
    "save_dot_except_mlpwi": Remat.SAVE_DOT_EXCEPT_MLP,
    "save_dot_with_context_except_mlp": Remat.SAVE_DOT_EXCEPT_MLP,
    "save_qkv_proj": Remat.SAVE_QKV_PROJ,
    "save_out_proj": Remat.SAVE_OUT_PROJ,
    "minimal_offloaded": Remat.OFFLOAD,
    "qkv_proj_offloaded": Remat.OFFLOAD,
    "full": Remat.FULL,
}
"""Policy → group; the first of each group is written where the current policy is of another."""

_NEAREST = {Remat.SELECTIVE: "minimal_with_context"}
"""What is written for a group that MaxText does not have: it, too, keeps products and the context of attention."""

LAYER_INPUT = "decoder_layer_input"
TENSORS = (
    LAYER_INPUT, "context", "mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo", "moe_mlpwi_0", "moe_mlpwi_1", "moe_mlpwo",
    "query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "out_proj", "query_wa_proj", "kv_wa_proj",
    "mla_q", "mla_kv", "attention_out", "indexer_cutoff_threshold",
)  # fmt: skip
"""What ``remat_policy=custom`` places: ``remat``, ``device`` or ``offload``."""

_ENTERING = {"query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj", "mla_q", "mla_kv"}
_LEAVING = {"out_proj", "attention_out", "context"}
"""Tensors before and after the products of attention scores."""

_HOST: dict[Offload, str] = {
    "optimizer": "optimizer_memory_host_offload",
    "parameters": "parameter_memory_host_offload",
}


def read_remat(settings: Mapping[str, object]) -> Remat | None:
    """The group of ``remat_policy``; ``None`` where it is not said.

    Raises:
        PlanError: MaxText has no such policy.
    """
    if "remat_policy" not in settings:
        return None
    policy = _policy(settings)
    if policy != "custom":
        if policy not in POLICIES:
            raise PlanError(
                f"MaxText has no remat_policy {policy[:40]!r}", hint=f"one of {', '.join(POLICIES)}, custom"
            )
        return POLICIES[policy]
    places = {tensor: str(settings.get(tensor, "remat")) for tensor in TENSORS if tensor != LAYER_INPUT}
    if "offload" in places.values():
        return Remat.OFFLOAD
    return _kept({tensor for tensor, place in places.items() if place == "device"})


def _kept(tensors: set[str]) -> Remat:
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
    layer_input = _policy(settings) == "custom" and settings.get(LAYER_INPUT) == "offload"
    if layer_input or read_remat(settings) is Remat.OFFLOAD:
        offload.append("activations")
    return tuple(offload)


def write_remat(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    """Overrides for rematerialisation and offload; what the plan leaves unknown is left as it is.

    Raises:
        PlanError: activations are offloaded under a policy that MaxText cannot combine with it.
    """
    overrides = {
        key: str(what in plan.offload).lower()
        for what, key in _HOST.items()
        if what in plan.offload or _true(current.get(key))
    }
    if plan.remat is Remat.OFFLOAD or "activations" not in plan.offload:
        return overrides | ({"remat_policy": _same_group(plan.remat, current)} if plan.remat else {})
    if plan.remat is not Remat.FULL:
        raise PlanError("MaxText offloads activations with remat=full or remat=offload only")
    places = {
        tensor: "remat" for tensor in TENSORS if tensor != LAYER_INPUT and current.get(tensor, "remat") != "remat"
    }
    return overrides | places | {"remat_policy": "custom", LAYER_INPUT: "offload"}


def _same_group(remat: Remat, current: Mapping[str, object]) -> str:
    policy = _policy(current)
    if POLICIES.get(policy) is remat:
        return policy
    return next((name for name, group in POLICIES.items() if group is remat), None) or _NEAREST[remat]


def _policy(settings: Mapping[str, object]) -> str:
    return str(settings.get("remat_policy") or "none").lower()


def _true(value: object) -> bool:
    return str(value).lower() == "true"
