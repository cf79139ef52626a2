"""Attention and mixtures of experts of the reference decoder."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.pallas.ops.tpu import splash_attention as splash
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from asap.compiler.reference.layout import BATCH_AXES, LogicalMesh

Queries = Float[Array, "batch heads sequence head_dim"]
KeysOrValues = Float[Array, "batch kv_heads sequence head_dim"]

_BLOCK = 512
_LANES = 128
_MASKED = -1e30


def attend(layout: LogicalMesh, query: Queries, key: KeysOrValues, value: KeysOrValues, window: int | None) -> Queries:
    """Causal softmax attention; ``window`` limits it to as many of the latest positions."""
    degree = layout.degree("model")
    if key.shape[1] % degree:
        key, value = (jnp.repeat(array, degree // array.shape[1], axis=1) for array in (key, value))
    attention = (
        _splash_attention
        if layout.on_tpu and query.shape[2] % (_LANES * layout.degree("seq")) == 0
        else _plain_attention
    )
    return attention(layout, query, key, value, window)


def _specs(layout: LogicalMesh, query: Queries, key: KeysOrValues) -> tuple[PartitionSpec, PartitionSpec]:
    return (
        layout.spec(query.shape, ("batch", "heads", "sequence", None)),
        layout.spec(key.shape, ("batch", "heads", None, None)),
    )


def _splash_attention(
    layout: LogicalMesh, query: Queries, key: KeysOrValues, value: KeysOrValues, window: int | None
) -> Queries:
    heads, length = query.shape[1], query.shape[2]
    shards = layout.degree("seq")
    mask = splash.CausalMask((length, length), shard_count=shards)
    if window is not None and window < length:
        mask = splash.LocalMask((length, length), (window - 1, 0), 0, shard_count=shards)
    block = math.gcd(length // shards, _BLOCK)
    sizes = splash.BlockSizes(
        block_q=block, block_kv=block, block_kv_compute=block, block_q_dkv=block, block_kv_dkv=block,
        block_kv_dkv_compute=block, block_q_dq=block, block_kv_dq=block,
    )  # fmt: skip
    kernel = splash.make_splash_mha(
        splash.MultiHeadMask([mask] * heads),
        head_shards=layout.degree("model"), q_seq_shards=shards, block_sizes=sizes, residual_checkpoint_name="context",
    )  # fmt: skip
    queries, keys = _specs(layout, query, key)
    kernel_spec = kernel.manual_sharding_spec(NamedSharding(layout.mesh, PartitionSpec(queries[1], queries[2])))

    def local(
        kernel: Any, query: Float[Array, "batch heads block head_dim"], key: KeysOrValues, value: KeysOrValues
    ) -> Float[Array, "batch heads block head_dim"]:
        return jax.vmap(kernel)(query, key, value)

    mapped = jax.shard_map(
        local, mesh=layout.mesh, in_specs=(kernel_spec, queries, keys, keys), out_specs=queries, check_vma=False
    )
    return mapped(kernel, query * query.shape[-1] ** -0.5, key, value)


def _plain_attention(
    layout: LogicalMesh, query: Queries, key: KeysOrValues, value: KeysOrValues, window: int | None
) -> Queries:
    def local(
        query: Float[Array, "batch heads block head_dim"], key: KeysOrValues, value: KeysOrValues
    ) -> Float[Array, "batch heads block head_dim"]:
        batch, heads, length, size = query.shape
        grouped = query.reshape(batch, key.shape[1], heads // key.shape[1], length, size)
        scores = jnp.einsum("bkgqd,bksd->bkgqs", grouped, key).astype(jnp.float32) * size**-0.5
        first = jax.lax.axis_index("seq") * length
        distance = first + jnp.arange(length)[:, None] - jnp.arange(key.shape[2])[None, :]
        visible = (distance >= 0) if window is None else (distance >= 0) & (distance < window)
        weights = jax.nn.softmax(jnp.where(visible, scores, _MASKED), axis=-1).astype(query.dtype)
        return jnp.einsum("bkgqs,bksd->bkgqd", weights, value).reshape(query.shape)

    queries, keys = _specs(layout, query, key)
    mapped = jax.shard_map(local, mesh=layout.mesh, in_specs=(queries, keys, keys), out_specs=queries, check_vma=False)
    return checkpoint_name(mapped(query, key, value), "context")


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
