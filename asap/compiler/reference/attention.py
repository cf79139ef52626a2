"""Causal attention inside ``shard_map``: the splash kernel on TPUs, the plain formula elsewhere.

Queries are split over the sequence axis and keys and values are brought together, as MaxText's context parallelism
does. Heads are split over the tensor axis.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.pallas.ops.tpu import splash_attention as splash
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from asap.compiler.reference.layout import LogicalMesh

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
        kernel: Any,
        query: Float[Array, "batch heads block head_dim"],
        key: KeysOrValues,
        value: KeysOrValues,
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
