"""A mixture-of-experts layer: top-k routing, an all-to-all over the expert axis, and back.

Each device routes its own tokens into a buffer with the same capacity for every expert, so shapes are static. With a
capacity factor of 1 an expert takes its fair share of tokens: the work of balanced, dropless routing.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int

from asap.compiler.reference.layout import BATCH_AXES, LogicalMesh

Tokens = Float[Array, "batch shards tokens d_model"]
Buffer = Float[Array, "batch shards experts capacity d_model"]


def moe_layer(
    layout: LogicalMesh,
    x: Float[Array, "batch sequence d_model"],
    router: Float[Array, "d_model experts"],
    weights: Mapping[str, Float[Array, "experts _ _"]],
    experts_per_token: int,
    capacity_factor: float,
    mlp: Callable[[Buffer, Any], Buffer],
) -> Float[Array, "batch sequence d_model"]:
    """Send each token through its experts, and add up what they return by the router's weights.

    Args:
        layout: the mesh.
        x: the normalised residual stream.
        router: weights of the router.
        weights: matrices of the experts.
        experts_per_token: experts that a token visits.
        capacity_factor: tokens that an expert takes, over its fair share.
        mlp: applied to the buffer of all experts, with ``weights``.
    """
    shards, experts = layout.degree("seq"), router.shape[-1]
    batch, sequence, width = x.shape
    groups = layout.constrain(x.reshape(batch, shards, sequence // shards, width), "batch", "sequence", None, None)
    capacity = min(math.ceil(sequence // shards * experts_per_token / experts * capacity_factor), sequence // shards)
    gates, slots = _route(groups, router, experts_per_token, capacity)
    tokens = _tokens_of_slots(slots, experts * capacity, experts_per_token)
    occupied = (tokens >= 0)[..., None]
    sent = jnp.where(occupied, jnp.take_along_axis(groups, jnp.maximum(tokens, 0)[..., None], axis=2), 0)
    sent = layout.constrain(sent, "batch", "sequence", None, None)
    sent = _exchange(layout, sent.reshape(batch, shards, experts, capacity, width), to_experts=True)
    done = layout.constrain(mlp(sent, weights), "batch_of_experts", "sequence", "experts", None, None)
    done = _exchange(layout, done, to_experts=False).reshape(batch, shards, experts * capacity, width)
    done = jnp.pad(layout.constrain(done, "batch", "sequence", None, None), ((0, 0), (0, 0), (0, 1), (0, 0)))
    found = jnp.take_along_axis(done, slots[..., None], axis=2).reshape(batch, shards, -1, experts_per_token, width)
    return jnp.einsum("bnskd,bnsk->bnsd", found, gates.astype(x.dtype)).reshape(x.shape)


def _route(
    groups: Tokens, router: Float[Array, "d_model experts"], experts_per_token: int, capacity: int
) -> tuple[Float[Array, "batch shards tokens choices"], Int[Array, "batch shards assignments"]]:
    """Weight and buffer slot of each choice; a choice beyond the capacity gets the slot after the last."""
    experts = router.shape[-1]
    scores = jax.nn.softmax(jnp.einsum("bnsd,de->bnse", groups, router).astype(jnp.float32))
    gates, chosen = jax.lax.top_k(scores, experts_per_token)
    chosen = chosen.reshape(*chosen.shape[:2], -1)
    taken = jax.nn.one_hot(chosen, experts, dtype=jnp.int32)
    position = jnp.sum(taken * (jnp.cumsum(taken, axis=2) - 1), axis=-1)
    slots = jnp.where(position < capacity, chosen * capacity + position, experts * capacity)
    return gates / jnp.sum(gates, axis=-1, keepdims=True), slots


def _tokens_of_slots(
    slots: Int[Array, "batch shards assignments"], size: int, experts_per_token: int
) -> Int[Array, "batch shards {size}"]:
    """The token in each slot of the buffer, -1 where there is none."""
    tokens = jnp.arange(slots.shape[-1], dtype=jnp.int32) // experts_per_token

    def place(slots: Int[Array, " assignments"]) -> Int[Array, " slots"]:
        return jnp.full(size + 1, -1, jnp.int32).at[slots].set(tokens)[:size]

    return jax.vmap(jax.vmap(place))(slots)


def _exchange(
    layout: LogicalMesh, buffer: Buffer, to_experts: bool
) -> Float[Array, "all_batch shards experts capacity d_model"]:
    """All-to-all between devices with slots for all experts and devices with all slots for their own experts."""
    if layout.degree("expert") == 1:
        return buffer
    by_token = PartitionSpec(BATCH_AXES, "seq")
    by_expert = PartitionSpec(("replica", "data"), "seq", "expert")
    split, concat = (2, 0) if to_experts else (0, 2)

    def trade(local: Buffer) -> Float[Array, "local_batch shards local_experts capacity d_model"]:
        return jax.lax.all_to_all(local, "expert", split_axis=split, concat_axis=concat, tiled=True)

    specs = (by_token, by_expert) if to_experts else (by_expert, by_token)
    return jax.shard_map(trade, mesh=layout.mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False)(buffer)
