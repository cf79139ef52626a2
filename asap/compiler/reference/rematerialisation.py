"""Rematerialisation policies of the reference decoder: what a layer saves for its backward pass, and where."""

from collections.abc import Callable, Sequence
from typing import Any

from asap.plans import Remat
from asap.plans.remat import Offload

INPUT = "layer_input"
PROJECTIONS = ("query", "key", "value", "out")
MLP = ("gate", "up", "down")
SAVED: dict[Remat, tuple[str, ...]] = {
    Remat.MINIMAL: (*PROJECTIONS, *MLP),
    Remat.SAVE_DOT_EXCEPT_MLP: PROJECTIONS,
    Remat.SAVE_QKV_PROJ: PROJECTIONS[:3],
    Remat.SAVE_OUT_PROJ: PROJECTIONS[3:],
    Remat.FULL: (),
    Remat.OFFLOAD: PROJECTIONS,
}
"""What is saved in addition to the input of each layer, under MaxText's policies of these names. ``selective`` saves
all but the output of attention, ``none`` saves everything."""


def offloaded(remat: Remat, offload: Sequence[Offload]) -> tuple[str, ...]:
    """What is saved in host memory: the input of each layer, and under ``offload`` the projections as well, as in
    Google's recipes for v6e."""
    if remat is Remat.OFFLOAD:
        return (INPUT, *SAVED[remat])
    return (INPUT,) if "activations" in offload and remat in SAVED else ()


def checkpointed(function: Callable[..., Any], remat: Remat, offload: Sequence[Offload]) -> Callable[..., Any]:
    """The function of a layer, with a backward pass that recomputes what the policy does not save."""
    import jax

    policies = jax.checkpoint_policies
    if remat is Remat.NONE:
        return function
    if remat is Remat.SELECTIVE:
        policy = policies.save_anything_except_these_names("context")
    elif moved := offloaded(remat, offload):
        policy = policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[name for name in SAVED[remat] if name not in moved],
            names_which_can_be_offloaded=list(moved), offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip
    else:
        policy = policies.save_only_these_names(*SAVED[remat])
    return jax.checkpoint(function, policy=policy, prevent_cse=False)
