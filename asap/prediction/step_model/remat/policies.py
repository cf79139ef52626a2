"""What of a layer is computed again and what is kept, under a policy: shares of its matrix products and tensors."""

from dataclasses import fields, replace

from asap.plans.partial_remat import RecomputedLayers, RecomputedModules
from asap.plans.remat import Policy, Remat, SavedTensors
from asap.prediction.step_model.inputs import ModelInputs, Number
from asap.prediction.step_model.remat.modules import shares_of_modules
from asap.prediction.step_model.remat.shares import RematShares

_MLP_INTO = 2 / 3
"""Of a gated MLP: what its last product writes is not needed again. PyTorch, which computes a layer again as a whole,
computes it nevertheless."""

NAMED = {
    Remat.NONE: RematShares(recompute_attention=0.0, recompute_elementwise=0.0, kept_layer=1.0),
    Remat.MINIMAL: RematShares(kept_qkv=1.0, kept_out=1.0, kept_mlp=1.0),
    Remat.SAVE_DOT_EXCEPT_MLP: RematShares(recompute_mlp=_MLP_INTO, kept_qkv=1.0, kept_out=1.0),
    Remat.SAVE_QKV_PROJ: RematShares(recompute_out=1.0, recompute_mlp=_MLP_INTO, kept_qkv=1.0),
    Remat.SAVE_OUT_PROJ: RematShares(recompute_qkv=1.0, recompute_mlp=_MLP_INTO, kept_out=1.0),
    Remat.SELECTIVE: RematShares(recompute_elementwise=0.0, kept_layer=1.0),
    Remat.OFFLOAD: RematShares(recompute_mlp=_MLP_INTO, host_qkv=1.0, host_out=1.0),
    Remat.FULL: RematShares(recompute_qkv=1.0, recompute_out=1.0, recompute_mlp=1.0),
}

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
        return _of_some_layers(float(policy.share), remat_shares(Remat.FULL, model, xla))
    if isinstance(policy, SavedTensors):
        return _by_tensor(policy, model)
    if policy is Remat.FULL and xla:
        return replace(NAMED[policy], recompute_mlp=_read_of_mlp(model))
    return NAMED[policy]


def _of_some_layers(share: float, again: RematShares) -> RematShares:
    """Mean over layers, of which a share is computed again and the others keep all."""
    kept = NAMED[Remat.NONE]
    names = [field.name for field in fields(RematShares)]
    mean = {name: share * getattr(again, name) + (1 - share) * getattr(kept, name) for name in names}
    return RematShares(**mean)


def _read_of_mlp(model: ModelInputs) -> Number:
    """Share of the MLP whose products the backward pass reads, all that XLA computes: not the last one of a dense MLP,
    but that of experts, as the gradient of the router's weights reads it."""
    return 1 - (1 - model.moe_share) / (model.up_projections + 1)


def _by_tensor(tensors: SavedTensors, model: ModelInputs) -> RematShares:
    shared = model.key_value_width / model.qkv_width / 2
    widths = {"query": 1 - 2 * shared, "key": shared, "value": shared}
    products = model.up_projections + 1
    into = ("gate", "up") if model.up_projections == 2 else ("up",)
    return RematShares(
        recompute_qkv=sum(width for name, width in widths.items() if name not in tensors),
        recompute_out=float("out" not in tensors),
        recompute_mlp=sum(name not in tensors for name in into) / products,
        recompute_attention=float("context" not in tensors),
        kept_qkv=sum(width for name, width in widths.items() if name in tensors.device),
        kept_context=float("context" in tensors.device),
        kept_out=float("out" in tensors.device),
        kept_mlp=sum(name in tensors.device for name in into) / model.up_projections,
        host_qkv=sum(width for name, width in widths.items() if name in tensors.host),
        host_context=float("context" in tensors.host),
        host_out=float("out" in tensors.host),
        host_mlp=sum(name in tensors.host for name in into) / model.up_projections,
    )
