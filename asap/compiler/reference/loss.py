"""The loss of the reference decoder: cross-entropy over all tokens at once, or in chunks that never hold all logits."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int, Shaped

from asap.compiler.reference.layout import NOTHING_SAID, LogicalMesh, Said

Hidden = Float[Array, "batch sequence d_model"]
Head = Float[Array, "d_model vocab"]
Targets = Int[Array, "batch sequence"]
Logits = Float[Array, "batch sequence vocab"]
Constrain = Callable[[Logits], Logits]
"""Lays out the logits on the mesh."""

_TOKENS = ("batch", "sequence")


def cross_entropy(
    layout: LogicalMesh,
    x: Hidden,
    head: Head,
    targets: Targets,
    chunks: int,
    gathered_once: bool = False,
    said: Said = NOTHING_SAID,
) -> Float[Array, ""]:
    """Mean cross-entropy.

    Each of ``chunks`` recomputes its logits in its backward pass. Either the sequence is chunked and each chunk gathers
    the ``head``, as with MaxText's ``num_vocab_tiling``; or the tokens of each device are, and the head is gathered
    once, as in trainers whose loss kernel runs inside ``shard_map``. ``said`` is what a mapping program says of logits.
    """
    if chunks == 1:
        return jnp.mean(_token_losses(x, _constrain_logits(layout, said), head, targets))
    if gathered_once:
        total = _chunked_by_device(layout, x, head, targets, chunks)
    else:
        total = _chunked_by_sequence(layout, x, head, targets, chunks, said)
    return total / targets.size


def _chunked_by_sequence(
    layout: LogicalMesh, x: Hidden, head: Head, targets: Targets, chunks: int, said: Said
) -> Float[Array, ""]:
    parts = (_split_sequence(layout, x, chunks, "residual"), _split_sequence(layout, targets, chunks))
    return _sum_over_chunks(parts, _constrain_logits(layout, said), head)


def _chunked_by_device(layout: LogicalMesh, x: Hidden, head: Head, targets: Targets, chunks: int) -> Float[Array, ""]:
    """The sum over all tokens, each device its own; the vocabulary stays split over the tensor axis."""
    batch, sequence = (layout.axes(length, name) for length, name in zip(targets.shape, _TOKENS, strict=True))

    def local(x: Hidden, head: Head, targets: Targets) -> Float[Array, ""]:
        parts = (x.reshape(chunks, 1, -1, x.shape[-1]), targets.reshape(chunks, 1, -1))
        return jax.lax.psum(_sum_over_chunks(parts, lambda logits: logits, head), batch + sequence)

    if not batch + sequence:
        return local(x, head, targets)
    everywhere, tokens = PartitionSpec(), PartitionSpec(batch, sequence)
    mapped = jax.shard_map(
        local, mesh=layout.mesh, in_specs=(tokens, everywhere, tokens), out_specs=everywhere,
        axis_names={*batch, *sequence}, check_vma=False,
    )  # fmt: skip
    return mapped(x, head, targets)


def _sum_over_chunks(
    parts: tuple[Float[Array, "chunks batch sequence d_model"], Int[Array, "chunks batch sequence"]],
    constrain: Constrain,
    head: Head,
) -> Float[Array, ""]:
    def add(total: Float[Array, ""], part: tuple[Hidden, Targets]) -> tuple[Float[Array, ""], None]:
        return total + jnp.sum(jax.checkpoint(_token_losses, static_argnums=1)(part[0], constrain, head, part[1])), None

    return jax.lax.scan(add, jnp.zeros(()), parts)[0]


def _token_losses(x: Hidden, constrain: Constrain, head: Head, targets: Targets) -> Float[Array, "batch sequence"]:
    logits = constrain(jnp.einsum("bsd,dv->bsv", x, head)).astype(jnp.float32)
    hit = jnp.arange(head.shape[-1]) == targets[..., None]
    chosen = jnp.sum(logits * hit, axis=-1)
    return jax.nn.logsumexp(logits, axis=-1) - chosen


def _constrain_logits(layout: LogicalMesh, said: Said) -> Constrain:
    return lambda logits: layout.constrain(logits, "batch", "sequence", "vocabulary", said=said)


def _split_sequence(
    layout: LogicalMesh, x: Shaped[Array, "batch sequence *rest"], chunks: int, *rest: str
) -> Shaped[Array, "chunks batch chunk *rest"]:
    """The sequence in chunks, each spread over the sequence axis of the mesh."""
    batch, length = x.shape[:2]
    shards = layout.degree("seq")
    parts = x.reshape(batch, shards, chunks, length // (shards * chunks), *x.shape[2:])
    parts = parts.transpose(2, 0, 1, 3, *range(4, parts.ndim)).reshape(chunks, batch, length // chunks, *x.shape[2:])
    return layout.constrain(parts, None, "batch", "sequence", *rest)
