"""The loss of the reference decoder: cross-entropy over all tokens at once, or in parts that never hold all logits."""

from typing import Any

from asap.compiler.layout import Layout

_TOKENS = ("batch", "sequence")


def cross_entropy(layout: Layout, x: Any, head: Any, targets: Any, chunks: int, gathered_once: bool = False) -> Any:
    """Mean cross-entropy of ``[batch, sequence]`` targets from ``x`` ``[batch, sequence, width]``.

    Each of ``chunks`` parts computes its logits again for its backward pass. The parts are of the sequence, and each
    gathers the ``head``, as in MaxText's ``num_vocab_tiling``; or they are of the tokens of one device, to which the
    head is gathered once, as in trainers whose kernel of the loss runs inside ``shard_map``.
    """
    import jax.numpy as jnp

    if chunks == 1:
        return jnp.mean(_of_tokens(x, _sharded(layout), head, targets))
    total = (_on_each_device if gathered_once else _in_parts)(layout, x, head, targets, chunks)
    return total / targets.size


def _in_parts(layout: Layout, x: Any, head: Any, targets: Any, chunks: int) -> Any:
    parts = (_split(layout, x, chunks, "residual"), _split(layout, targets, chunks))
    return _summed(parts, _sharded(layout), head)


def _on_each_device(layout: Layout, x: Any, head: Any, targets: Any, chunks: int) -> Any:
    """The sum over all tokens, each device its own; the vocabulary stays split over the tensor axis."""
    import jax
    from jax.sharding import PartitionSpec

    batch, sequence = (layout.axes(length, name) for length, name in zip(targets.shape, _TOKENS, strict=True))

    def local(x: Any, head: Any, targets: Any) -> Any:
        parts = (x.reshape(chunks, 1, -1, x.shape[-1]), targets.reshape(chunks, 1, -1))
        return jax.lax.psum(_summed(parts, lambda logits: logits, head), batch + sequence)

    if not batch + sequence:
        return local(x, head, targets)
    everywhere, tokens = PartitionSpec(), PartitionSpec(batch, sequence)
    mapped = jax.shard_map(
        local, mesh=layout.mesh, in_specs=(tokens, everywhere, tokens), out_specs=everywhere,
        axis_names={*batch, *sequence}, check_vma=False,
    )  # fmt: skip
    return mapped(x, head, targets)


def _summed(parts: tuple[Any, Any], place: Any, head: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def add(total: Any, part: tuple[Any, Any]) -> tuple[Any, None]:
        return total + jnp.sum(jax.checkpoint(_of_tokens, static_argnums=1)(part[0], place, head, part[1])), None

    return jax.lax.scan(add, jnp.zeros(()), parts)[0]


def _of_tokens(x: Any, place: Any, head: Any, targets: Any) -> Any:
    import jax
    import jax.numpy as jnp

    logits = place(jnp.einsum("bsd,dv->bsv", x, head)).astype(jnp.float32)
    hit = jax.lax.broadcasted_iota(jnp.int32, logits.shape, 2) == targets[..., None]
    chosen = jnp.sum(jnp.where(hit, logits, 0.0), axis=-1)
    return jax.nn.logsumexp(logits, axis=-1) - chosen


def _sharded(layout: Layout) -> Any:
    return lambda logits: layout.constrain(logits, "batch", "sequence", "vocabulary")


def _split(layout: Layout, x: Any, chunks: int, *rest: str) -> Any:
    """``[batch, sequence, …]`` → ``[chunks, batch, sequence / chunks, …]``, each part spread over the sequence axis."""
    batch, length = x.shape[:2]
    shards = layout.degree("seq")
    parts = x.reshape(batch, shards, chunks, length // (shards * chunks), *x.shape[2:])
    parts = parts.transpose(2, 0, 1, 3, *range(4, parts.ndim)).reshape(chunks, batch, length // chunks, *x.shape[2:])
    return layout.constrain(parts, None, "batch", "sequence", *rest)
