"""A pipeline over the stage axis: stages run in parallel, and a rotation passes their results on.

The schedule is GPipe's as MaxText writes it for XLA: one loop of microbatches + stages - 1 iterations, in each of which
every stage works on another microbatch. All that goes in and comes out is laid out as the batch: left to itself, the
partitioner gathers whole batches.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from asap.compiler.reference.layout import LogicalMesh


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
