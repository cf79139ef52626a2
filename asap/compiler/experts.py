"""A mixture-of-experts layer: top-k routing, an all-to-all over the expert axis, and back.

Each device routes its own tokens into a buffer of equal room for every expert, so shapes are static. With
``capacity`` 1 an expert has room for its fair share: the work of balanced, dropless routing.
"""

import math
from typing import Any

from asap.compiler.layout import BATCH_AXES, Layout


def mix_experts(
    layout: Layout, x: Any, router: Any, weights: dict[str, Any], per_token: int, capacity: float, feed: Any
) -> Any:
    """Send each token of ``x`` ``[batch, sequence, width]`` through its experts.

    Args:
        layout: the mesh.
        x: the normalised residual stream.
        router: ``[width, experts]``.
        weights: matrices of the experts, with experts in front.
        per_token: experts a token visits.
        capacity: room of an expert over its fair share.
        feed: the MLP, ``feed(tokens [batch, shards, experts, room, width], weights)``.
    """
    import jax.numpy as jnp

    shards, experts = layout.degree("seq"), router.shape[-1]
    batch, sequence, width = x.shape
    groups = layout.constrain(x.reshape(batch, shards, sequence // shards, width), "batch", "sequence", None, None)
    room = min(math.ceil(sequence // shards * per_token / experts * capacity), sequence // shards)
    shares, slots = _route(groups, router, per_token, room)
    owners = _owners(slots, experts * room, per_token)
    filled = (owners >= 0)[..., None]
    sent = jnp.where(filled, jnp.take_along_axis(groups, jnp.maximum(owners, 0)[..., None], axis=2), 0)
    sent = layout.constrain(sent, "batch", "sequence", None, None)
    sent = _exchange(layout, sent.reshape(batch, shards, experts, room, width), there=True)
    done = layout.constrain(feed(sent, weights), "batch_of_experts", "sequence", "experts", None, None)
    done = _exchange(layout, done, there=False).reshape(batch, shards, experts * room, width)
    done = jnp.pad(layout.constrain(done, "batch", "sequence", None, None), ((0, 0), (0, 0), (0, 1), (0, 0)))
    found = jnp.take_along_axis(done, slots[..., None], axis=2).reshape(batch, shards, -1, per_token, width)
    return jnp.einsum("bnskd,bnsk->bnsd", found, shares.astype(x.dtype)).reshape(x.shape)


def _route(groups: Any, router: Any, per_token: int, room: int) -> tuple[Any, Any]:
    """Weight of each choice, and its slot in the buffer; a choice beyond the room gets the slot after the last."""
    import jax
    import jax.numpy as jnp

    experts = router.shape[-1]
    scores = jax.nn.softmax(jnp.einsum("bnsd,de->bnse", groups, router).astype(jnp.float32))
    shares, chosen = jax.lax.top_k(scores, per_token)
    chosen = chosen.reshape(*chosen.shape[:2], -1)
    taken = jax.nn.one_hot(chosen, experts, dtype=jnp.int32)
    position = jnp.sum(taken * (jnp.cumsum(taken, axis=2) - 1), axis=-1)
    slots = jnp.where(position < room, chosen * room + position, experts * room)
    return shares / jnp.sum(shares, axis=-1, keepdims=True), slots


def _owners(slots: Any, size: int, per_token: int) -> Any:
    """The token in each slot of the buffer, -1 where there is none."""
    import jax
    import jax.numpy as jnp

    tokens = jnp.arange(slots.shape[-1], dtype=jnp.int32) // per_token

    def place(slots: Any) -> Any:
        return jnp.full(size + 1, -1, jnp.int32).at[slots].set(tokens)[:size]

    return jax.vmap(jax.vmap(place))(slots)


def _exchange(layout: Layout, buffer: Any, there: bool) -> Any:
    """Trade ``[batch, shards, experts, room, width]`` between own tokens of all experts and all tokens of own."""
    import jax
    from jax.sharding import PartitionSpec

    if layout.degree("expert") == 1:
        return buffer
    mine = PartitionSpec(BATCH_AXES, "seq")
    theirs = PartitionSpec(("replica", "data"), "seq", "expert")
    split, concat = (2, 0) if there else (0, 2)

    def trade(local: Any) -> Any:
        return jax.lax.all_to_all(local, "expert", split_axis=split, concat_axis=concat, tiled=True)

    specs = (mine, theirs) if there else (theirs, mine)
    return jax.shard_map(trade, mesh=layout.mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False)(buffer)
