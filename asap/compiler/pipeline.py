"""A pipeline over the stage axis: stages run side by side, and a rotation hands their results on.

The schedule is GPipe's as MaxText writes it for XLA: one loop over microbatches + stages - 1 turns, in which every
stage works on another microbatch.
"""

from collections.abc import Callable
from typing import Any

from asap.compiler.layout import Layout


def run_pipeline(
    layout: Layout, block: Callable[[Any, Any], tuple[Any, None]], weights: Any, x: Any, microbatches: int
) -> Any:
    """Run ``x`` ``[batch, sequence, width]`` through blocks whose weights are stacked in front."""
    import jax
    import jax.numpy as jnp

    stages = layout.degree("stage")
    weights = jax.tree.map(lambda w: w.reshape(stages, w.shape[0] // stages, *w.shape[1:]), weights)
    queue = split_batch(layout, x, microbatches)
    names = ("stages", "batch", "sequence", "residual")
    work = jax.vmap(lambda weights, x: jax.lax.scan(block, x, weights)[0], spmd_axis_name="stage")

    def turn(state: Any, index: Any) -> tuple[Any, Any]:
        fresh = jax.lax.dynamic_index_in_dim(queue, jnp.minimum(index, microbatches - 1), 0, keepdims=False)
        state = layout.constrain(jnp.roll(state, 1, axis=0).at[0].set(fresh), *names)
        state = layout.constrain(work(weights, state), *names)
        return state, state[-1]

    empty = layout.constrain(jnp.zeros((stages, *queue.shape[1:]), x.dtype), *names)
    _, finished = jax.lax.scan(turn, empty, jnp.arange(microbatches + stages - 1))
    return finished[stages - 1 :].swapaxes(0, 1).reshape(x.shape)


def split_batch(layout: Layout, x: Any, microbatches: int) -> Any:
    """``[batch, …]`` → ``[microbatches, batch / microbatches, …]``, each microbatch spread over all devices."""
    parts = x.reshape(x.shape[0] // microbatches, microbatches, *x.shape[1:]).swapaxes(0, 1)
    rest = ("sequence", "residual")[: x.ndim - 1]
    return layout.constrain(parts, None, "batch", *rest)
