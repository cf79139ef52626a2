"""What of a layer is computed again and what is kept, under a policy: shares of its matrix products and tensors."""

from collections.abc import Collection
from dataclasses import dataclass, fields

from asap.plans import Remat
from asap.plans.remat import POLICIES, SAVED, Module, Policy, RecomputedLayers, RecomputedModules, SavedTensors
from asap.prediction.step_model.compute import RESIDUAL_PASSES
from asap.prediction.step_model.inputs import ModelInputs, Number


@dataclass(frozen=True, slots=True)
class RematShares:
    """Fields of :class:`PlanInputs` of the same names."""

    recompute_qkv: Number = 0.0
    recompute_out: Number = 0.0
    recompute_mlp: Number = 0.0
    recompute_attention: Number = 1.0
    recompute_elementwise: Number = 1.0
    kept_layer: Number = 0.0
    kept_inputs: Number = 0.0
    kept_qkv: Number = 0.0
    kept_context: Number = 0.0
    kept_out: Number = 0.0
    kept_mlp: Number = 0.0
    freed_norms: Number = 0.0
    freed_qkv: Number = 0.0
    freed_mlp: Number = 0.0
    freed_experts: Number = 0.0
    freed_shared_experts: Number = 0.0
    freed_activation: Number = 0.0
    host_qkv: Number = 0.0
    host_context: Number = 0.0
    host_out: Number = 0.0
    host_mlp: Number = 0.0


NORM_PASSES = 2.0
"""Over the residual stream, of a norm that is computed again: it is read, and its output written."""
LATENT_UP = 0.78
"""Of the products before latent attention, those that ``mla_up_proj`` computes again: by the parameters of DeepSeek-V3
(arXiv:2412.19437, section 4.2), 54.5 of 69.7 million."""


def shares_of_modules(modules: Collection[Module], model: ModelInputs) -> RematShares:
    """Shares where these modules of every layer are computed again.

    ``layernorm``, ``moe_act`` and ``mla_up_proj`` discard what they write, the others what lies inside of them
    (Megatron-Core, ``core/transformer/transformer_config.py``, ``recompute_modules``).
    """
    whole = "moe" in modules
    again = model.mlp_width * (1 - model.moe_share) * ("mlp" in modules)
    again = again + _experts(model) * whole
    again = again + model.moe_share * model.shared_mlp_width * (whole or "shared_experts" in modules)
    return RematShares(
        recompute_qkv=LATENT_UP * ("mla_up_proj" in modules),
        recompute_mlp=again / _hidden(model),
        recompute_attention=float("core_attn" in modules),
        recompute_elementwise=_elementwise(modules, model, again),
        kept_layer=1.0,
        freed_norms=float("layernorm" in modules),
        freed_qkv=float("mla_up_proj" in modules),
        freed_mlp=float("mlp" in modules),
        freed_experts=float(whole),
        freed_shared_experts=float(whole or "shared_experts" in modules),
        freed_activation=float("moe_act" in modules and not whole),
    )


def _hidden(model: ModelInputs) -> Number:
    """Hidden width of the MLP that a token passes, mean over layers."""
    return model.mlp_width * (1 - model.moe_share) + _experts(model) + model.moe_share * model.shared_mlp_width


def _experts(model: ModelInputs) -> Number:
    """That of routed experts, mean over layers."""
    return model.moe_share * model.experts_per_token * model.expert_mlp_width


def _elementwise(modules: Collection[Module], model: ModelInputs, hidden: Number) -> Number:
    """Share of the elementwise operations of a layer that is computed again, by the widths that they pass over."""
    inner = model.up_projections + 1
    again = inner * hidden + 2 * model.qkv_width * ("mla_up_proj" in modules)
    again = again + NORM_PASSES * model.sequential_blocks * model.width * ("layernorm" in modules)
    again = again + inner * _experts(model) * ("moe_act" in modules and "moe" not in modules)
    total = RESIDUAL_PASSES * model.sequential_blocks * model.width + inner * _hidden(model) + 2 * model.qkv_width
    return again / total


_WHOLE = {
    Remat.NONE: RematShares(recompute_attention=0.0, recompute_elementwise=0.0, kept_layer=1.0),
    Remat.SELECTIVE: RematShares(recompute_elementwise=0.0, kept_layer=1.0),
    Remat.FULL: RematShares(recompute_qkv=1.0, recompute_out=1.0, recompute_mlp=1.0),
}
"""Policies of PyTorch, which computes all of a layer again, also what the last product writes and nothing reads."""

EVERY_SECOND_PRODUCT = SavedTensors(("query", "value", "context", "gate"))
"""torchtitan's ``selective`` of operations: of the products of a layer it recomputes every second one
(``distributed/activation_checkpoint.py``)."""


def remat_shares(policy: Policy, model: ModelInputs, xla: bool) -> RematShares:
    """Shares under a policy; tensor by tensor, as jax.checkpoint saves names.

    A product is computed again unless what it writes is saved, attention unless its context is. What lies in host
    memory takes none of the HBM.
    """
    if isinstance(policy, RecomputedModules):
        return shares_of_modules(policy.modules, model)
    if isinstance(policy, RecomputedLayers):
        return _share_of_layers(float(policy.share), remat_shares(Remat.FULL, model, xla))
    if isinstance(policy, Remat) and policy in _WHOLE and not (xla and policy is Remat.FULL):
        return _WHOLE[policy]
    tensors = policy if isinstance(policy, SavedTensors) else SAVED[policy]
    return _by_tensor(tensors, model, xla, policy in POLICIES.values())


def _share_of_layers(share: float, again: RematShares) -> RematShares:
    """Mean over layers, of which a share is computed again and the others keep all."""
    kept = _WHOLE[Remat.NONE]
    names = [field.name for field in fields(RematShares)]
    mean = {name: share * getattr(again, name) + (1 - share) * getattr(kept, name) for name in names}
    return RematShares(**mean)


def _by_tensor(tensors: SavedTensors, model: ModelInputs, xla: bool, named: bool) -> RematShares:
    """Of an MLP, XLA computes again what the backward pass reads: not what the last product writes, but for experts, as
    the gradient of the router's weights reads that; ``minimal`` keeps it. A policy that has no name keeps the input of
    each layer, inside a block of several as well."""
    shared = model.key_value_width / model.qkv_width / 2
    widths = {"query": 1 - 2 * shared, "key": shared, "value": shared}
    products, last = model.up_projections + 1, xla and not (named and "up" in tensors)
    into = ("gate", "up") if model.up_projections == 2 else ("up",)
    return RematShares(
        recompute_qkv=sum(width for name, width in widths.items() if name not in tensors),
        recompute_out=float("out" not in tensors),
        recompute_mlp=(sum(name not in tensors for name in into) + model.moe_share * last) / products,
        recompute_attention=float("context" not in tensors),
        kept_inputs=float(not named),
        kept_qkv=sum(width for name, width in widths.items() if name in tensors.device),
        kept_context=float("context" in tensors.device),
        kept_out=float("out" in tensors.device),
        kept_mlp=sum(name in tensors.device for name in into) / model.up_projections,
        host_qkv=sum(width for name, width in widths.items() if name in tensors.host),
        host_context=float("context" in tensors.host),
        host_out=float("out" in tensors.host),
        host_mlp=sum(name in tensors.host for name in into) / model.up_projections,
    )
