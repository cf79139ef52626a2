"""The loss of the reference decoder: cross-entropy over all tokens at once, or in parts that never hold all logits."""

from typing import Any

from asap.compiler.layout import Layout


def cross_entropy(layout: Layout, x: Any, head: Any, targets: Any, chunks: int) -> Any:
    """Mean cross-entropy of ``[batch, sequence]`` targets from ``x`` ``[batch, sequence, width]``.

    Each of ``chunks`` parts of the sequence computes its logits again for its backward pass, as MaxText's
    ``num_vocab_tiling`` does.
    """
    import jax
    import jax.numpy as jnp

    if chunks == 1:
        return jnp.mean(_of_tokens(layout, x, head, targets))

    def add(total: Any, part: tuple[Any, Any]) -> tuple[Any, None]:
        return total + jnp.sum(jax.checkpoint(_of_tokens, static_argnums=0)(layout, part[0], head, part[1])), None

    parts = (_split(layout, x, chunks, "residual"), _split(layout, targets, chunks))
    total, _ = jax.lax.scan(add, jnp.zeros(()), parts)
    return total / targets.size


def _of_tokens(layout: Layout, x: Any, head: Any, targets: Any) -> Any:
    import jax
    import jax.numpy as jnp

    logits = jnp.einsum("bsd,dv->bsv", x, head)
    logits = layout.constrain(logits, "batch", "sequence", "vocabulary").astype(jnp.float32)
    hit = jax.lax.broadcasted_iota(jnp.int32, logits.shape, 2) == targets[..., None]
    chosen = jnp.sum(jnp.where(hit, logits, 0.0), axis=-1)
    return jax.nn.logsumexp(logits, axis=-1) - chosen


def _split(layout: Layout, x: Any, chunks: int, *rest: str) -> Any:
    """``[batch, sequence, …]`` → ``[chunks, batch, sequence / chunks, …]``, each part spread over the sequence axis."""
    batch, length = x.shape[:2]
    shards = layout.degree("seq")
    parts = x.reshape(batch, shards, chunks, length // (shards * chunks), *x.shape[2:])
    parts = parts.transpose(2, 0, 1, 3, *range(4, parts.ndim)).reshape(chunks, batch, length // chunks, *x.shape[2:])
    return layout.constrain(parts, None, "batch", "sequence", *rest)
