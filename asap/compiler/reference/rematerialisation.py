"""Rematerialisation policies of the reference decoder: what a layer saves for its backward pass, and where."""

from collections.abc import Callable, Sequence
from typing import Any

from asap.core.errors import PlanError
from asap.plans import Remat
from asap.plans.remat import SAVED, Offload, Policy, SavedTensors

INPUT = "layer_input"
MLP = ("gate", "up", "down")


def offloaded(remat: Policy, offload: Sequence[Offload]) -> tuple[str, ...]:
    """What is saved in host memory: tensors of the policy, and inputs of layers, as in Google's recipes for v6e."""
    tensors = _saved(remat)
    inputs = remat is Remat.OFFLOAD or ("activations" in offload and tensors is not None)
    return (*((INPUT,) if inputs else ()), *(tensors.host if tensors else ()))


def checkpointed(function: Callable[..., Any], remat: Policy, offload: Sequence[Offload]) -> Callable[..., Any]:
    """The function of a layer, with a backward pass that recomputes what the policy does not save."""
    import jax

    policies = jax.checkpoint_policies
    tensors = _saved(remat)
    if remat is Remat.NONE:
        return function
    if tensors is None:
        policy = policies.save_anything_except_these_names("context")
    elif moved := offloaded(remat, offload):
        policy = policies.save_and_offload_only_these_names(
            names_which_can_be_saved=list(tensors.device), names_which_can_be_offloaded=list(moved),
            offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip
    else:
        policy = policies.save_only_these_names(*tensors.device)
    return jax.checkpoint(function, policy=policy, prevent_cse=False)


def _saved(remat: Policy) -> SavedTensors | None:
    """Tensors that a policy saves; ``None`` where it saves all but some: ``none``, and ``selective`` all but what
    attention writes."""
    if isinstance(remat, SavedTensors):
        return remat
    if isinstance(remat, Remat):
        return SAVED.get(remat)
    raise PlanError(f"the reference step recomputes neither single modules nor some of the layers: remat={remat}")
