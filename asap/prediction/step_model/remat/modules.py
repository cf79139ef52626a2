"""Shares of a layer under Megatron-Core's recomputed modules: all is kept but what they write."""

from collections.abc import Collection

from asap.plans.partial_remat import Module
from asap.prediction.step_model.compute import RESIDUAL_PASSES
from asap.prediction.step_model.inputs import ModelInputs, Number
from asap.prediction.step_model.remat.shares import RematShares

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
