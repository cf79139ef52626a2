"""The reference decoder: plain JAX with named dimensions, dense or mixture of experts, scanned over its layers.

Parameters are kept in float32 or bfloat16 and used in the precision of the step. Layers follow Llama: RMSNorm before
attention and MLP, or one before both where they stand side by side, rotary positions, a gated or plain MLP; Mixtral's
router where there are experts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asap.compiler.attention import attend
from asap.compiler.experts import mix_experts
from asap.compiler.layout import Layout
from asap.compiler.loss import cross_entropy
from asap.compiler.pipeline import run_pipeline
from asap.compiler.rematerialisation import INPUT, MLP, checkpointed
from asap.compiler.segments import Layer, Segment, segments
from asap.models import Architecture
from asap.plans import Remat
from asap.plans.plan import Offload

_EPSILON = 1e-5
_ROTARY_BASE = 10_000.0


@dataclass(frozen=True)
class Parameter:
    """Shape of a parameter and the names of its dimensions."""

    shape: tuple[int, ...]
    names: tuple[str | None, ...]


@dataclass(frozen=True)
class Decoder:
    """A decoder on a mesh. ``dtype`` is that of the computation; ``microbatches`` are those of a pipeline.

    ``offload`` is what the plan keeps in host memory; the optimizer's part of it is the training step's business.
    ``loss_chunks`` are parts whose logits are computed one after the other, with a head that each of them gathers
    unless ``head_once``.
    """

    model: Architecture
    layout: Layout
    remat: Remat
    dtype: Any
    microbatches: int = 1
    capacity: float = 1.0
    offload: tuple[Offload, ...] = ()
    loss_chunks: int = 1
    head_once: bool = False
    scanned: bool = True
    weights: Any = "float32"

    def parameters(self) -> dict[str, Any]:
        """Every parameter as a tree of :class:`Parameter`."""
        width, vocab = self.model.d_model or 0, self.model.vocab or 0
        tree: dict[str, Any] = {
            "embedding": Parameter((vocab, width), ("vocabulary", "embed")),
            "norm": Parameter((width,), (None,)),
            "segments": [[self._layer(layer, s.repeats) for layer in s.block] for s in self._segments()],
        }
        if not self.model.tied_embeddings:
            tree["head"] = Parameter((width, vocab), ("embed", "vocabulary"))
        return tree

    def loss(self, parameters: dict[str, Any], tokens: Any, targets: Any) -> Any:
        """Mean cross-entropy of ``[batch, sequence]`` targets."""
        import jax.numpy as jnp

        x = jnp.take(parameters["embedding"].astype(self.dtype), tokens, axis=0)
        x = self._residual(x)
        for segment, weights in zip(self._segments(), parameters["segments"], strict=True):
            x = self._segment(segment, weights, x)
        x = _normalise(x, parameters["norm"])
        head = parameters["embedding"].T if self.model.tied_embeddings else parameters["head"]
        return cross_entropy(self.layout, x, head.astype(self.dtype), targets, self.loss_chunks, self.head_once)

    def _segments(self) -> tuple[Segment, ...]:
        return segments(self.model, self.scanned)

    def _segment(self, segment: Segment, weights: list[dict[str, Any]], x: Any) -> Any:
        import jax

        def block(x: Any, weights: list[dict[str, Any]]) -> tuple[Any, None]:
            for layer, own in zip(segment.block, weights, strict=True):
                x = self._checkpointed(layer)(x, own)
            return x, None

        if self.layout.degree("stage") > 1:
            return run_pipeline(self.layout, block, weights, x, self.microbatches)
        return jax.lax.scan(block, x, weights)[0]

    def _checkpointed(self, layer: Layer) -> Callable[[Any, Any], Any]:
        return checkpointed(lambda x, own: self._apply(layer, own, x), self.remat, self.offload)

    def _apply(self, layer: Layer, weights: dict[str, Any], x: Any) -> Any:
        x = self._keep(x, INPUT)
        inner = self._normed(x, weights["attention_norm"])
        attended = self._attention(layer, weights, inner)
        if self.model.parallel_block:
            return self._residual(x + (attended + self._feed_forward(layer, weights, inner)))
        x = self._residual(x + attended)
        return self._residual(x + self._feed_forward(layer, weights, self._normed(x, weights["mlp_norm"])))

    def _feed_forward(self, layer: Layer, weights: dict[str, Any], x: Any) -> Any:
        if not layer.routed:
            return self._mlp(weights, x, "bs")
        names = [name for name in MLP if f"expert_{name}" in weights]
        experts = {name: weights[f"expert_{name}"] for name in names}
        out = mix_experts(
            self.layout, x, weights["router"].astype(self.dtype), experts,
            self.model.experts_per_token, self.capacity, lambda x, own: self._mlp(own, x, "bnec", "e"),
        )  # fmt: skip
        return out + self._mlp(weights, x, "bs") if "up" in weights else out

    def _attention(self, layer: Layer, weights: dict[str, Any], x: Any) -> Any:
        import jax.numpy as jnp

        def project(name: str) -> Any:
            return self._keep(jnp.einsum("bsd,dhk->bhsk", x, weights[name].astype(self.dtype)), name)

        query, key, value = project("query"), project("key"), project("value")
        if self.model.qk_norm:
            query, key = _normalise(query, weights["query_norm"]), _normalise(key, weights["key_norm"])
        query = self.layout.constrain(query, "batch", "heads", "sequence", None)
        context = attend(self.layout, _rotate(query), _rotate(key), value, layer.window)
        return self._keep(jnp.einsum("bhsk,hkd->bsd", context, weights["out"].astype(self.dtype)), "out")

    def _mlp(self, weights: dict[str, Any], x: Any, tokens: str, experts: str = "") -> Any:
        import jax
        import jax.numpy as jnp

        def times(x: Any, name: str, formula: str) -> Any:
            return self._keep(jnp.einsum(formula, x, weights[name].astype(self.dtype)), name)

        enter = f"{tokens}d,{experts}df->{tokens}f"
        up = times(x, "up", enter)
        hidden = jax.nn.silu(times(x, "gate", enter)) * up if "gate" in weights else jax.nn.gelu(up)
        return times(hidden, "down", f"{tokens}f,{experts}fd->{tokens}d")

    def _keep(self, x: Any, name: str) -> Any:
        from jax.ad_checkpoint import checkpoint_name

        return checkpoint_name(x, name)

    def _residual(self, x: Any) -> Any:
        return self.layout.constrain(x, "batch", "sequence", "residual")

    def _normed(self, x: Any, scale: Any) -> Any:
        """What a block reads; with a tensor axis split like the residual stream, as in MaxText, to be gathered once."""
        normed = _normalise(x, scale)
        return self._residual(normed) if self.layout.degree("model") > 1 else normed

    def _layer(self, layer: Layer, repeats: int) -> dict[str, Parameter]:
        model = self.model
        width, heads, kv_heads, size = (n or 0 for n in (model.d_model, model.heads, model.kv_heads, model.head_dim))

        def stacked(shape: tuple[int, ...], *names: str | None) -> Parameter:
            return Parameter((repeats, *shape), ("layers", *names))

        tree = {
            "attention_norm": stacked((width,), None),
            "query": stacked((width, heads, size), "embed", "heads", None),
            "key": stacked((width, kv_heads, size), "embed", "heads", None),
            "value": stacked((width, kv_heads, size), "embed", "heads", None),
            "out": stacked((heads, size, width), "heads", None, "embed"),
        }
        if not model.parallel_block:
            tree["mlp_norm"] = stacked((width,), None)
        if model.qk_norm:
            tree |= {"query_norm": stacked((size,), None), "key_norm": stacked((size,), None)}
        names = MLP if model.gated_mlp else MLP[1:]
        hidden = (model.expert_d_ff or 0) * model.shared_experts if layer.routed else model.d_ff or 0
        for name in names if hidden else ():
            shape, dims = (
                ((hidden, width), ("hidden", "embed")) if name == "down" else ((width, hidden), ("embed", "hidden"))
            )
            tree[name] = stacked(shape, *dims)
        if layer.routed:
            inner, experts = model.expert_d_ff or 0, model.experts
            tree["router"] = stacked((width, experts), "embed", None)
            for name in names:
                down = name == "down"
                shape = (experts, inner, width) if down else (experts, width, inner)
                dims = ("hidden", "expert_embed") if down else ("expert_embed", "hidden")
                tree[f"expert_{name}"] = stacked(shape, "experts", *dims)
        return tree


def _normalise(x: Any, scale: Any) -> Any:
    import jax
    import jax.numpy as jnp

    exact = x.astype(jnp.float32)
    mean = jnp.mean(exact * exact, axis=-1, keepdims=True)
    return (exact * jax.lax.rsqrt(mean + _EPSILON) * scale).astype(x.dtype)


def _rotate(x: Any) -> Any:
    """Rotary positions (arXiv:2104.09864) of ``[batch, heads, sequence, head]``."""
    import jax.numpy as jnp

    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[2])[:, None] * _ROTARY_BASE ** (-jnp.arange(half) / half)
    cosine, sine = jnp.cos(angle).astype(x.dtype), jnp.sin(angle).astype(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)
