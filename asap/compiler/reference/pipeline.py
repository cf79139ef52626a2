"""How layers run: a pipeline over the stage axis, and what a layer saves for its backward pass."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from asap.compiler.reference.layout import LogicalMesh
from asap.core.errors import PlanError
from asap.plans import Remat
from asap.plans.remat import SAVED, Offload, Policy, SavedTensors


def run_pipeline(
    layout: LogicalMesh,
    block: Callable[[Any, Any], tuple[Any, None]],
    weights: Any,
    x: Float[Array, "batch sequence d_model"],
    microbatches: int,
) -> Float[Array, "batch sequence d_model"]:
    """Run ``x`` through blocks; ``weights`` is a tree of arrays with the blocks as their first dimension."""
    stages = layout.degree("stage")
    weights = jax.tree.map(lambda w: w.reshape(stages, w.shape[0] // stages, *w.shape[1:]), weights)
    queue = split_batch(layout, x, microbatches)
    run_stages = jax.vmap(lambda weights, x: jax.lax.scan(block, x, weights)[0], spmd_axis_name="stage")
    of_stage = ("batch", "sequence", "residual")

    def iterate(
        state: Float[Array, "stages batch sequence d_model"], index: Int[Array, ""]
    ) -> tuple[Float[Array, "stages batch sequence d_model"], Float[Array, "batch sequence d_model"]]:
        incoming = jax.lax.dynamic_index_in_dim(queue, jnp.minimum(index, microbatches - 1), 0, keepdims=False)
        incoming = layout.constrain(incoming, *of_stage)
        state = layout.constrain(jnp.roll(state, 1, axis=0).at[0].set(incoming), "stages", *of_stage)
        state = layout.constrain(run_stages(weights, state), "stages", *of_stage)
        return state, layout.constrain(state[-1], *of_stage)

    empty = layout.constrain(jnp.zeros((stages, *queue.shape[1:]), x.dtype), "stages", *of_stage)
    _, finished = jax.lax.scan(iterate, empty, jnp.arange(microbatches + stages - 1))
    finished = layout.constrain(finished[stages - 1 :], None, *of_stage)
    return layout.constrain(finished.swapaxes(0, 1).reshape(x.shape), *of_stage)


def split_batch(
    layout: LogicalMesh, x: Shaped[Array, "batch *rest"], microbatches: int
) -> Shaped[Array, "microbatches microbatch *rest"]:
    """The batch in microbatches, each spread over all devices."""
    parts = x.reshape(x.shape[0] // microbatches, microbatches, *x.shape[1:]).swapaxes(0, 1)
    rest = ("sequence", "residual")[: x.ndim - 1]
    return layout.constrain(parts, None, "batch", *rest)


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
