"""The reference decoder: plain JAX with named dimensions, dense or mixture of experts, scanned over its layers.

Parameters are kept in float32 or bfloat16 and used in the precision of the step. Layers follow Llama: RMSNorm before
attention and MLP, or one before both where they stand side by side, rotary positions, a gated or plain MLP; Mixtral's
router where there are experts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Float, Int, Shaped

from asap.compiler.reference.layers import attend, moe_layer
from asap.compiler.reference.layout import NO_LINES, LogicalMesh, ProgramLines
from asap.compiler.reference.loss import cross_entropy
from asap.compiler.reference.parameters import parameter_tree
from asap.compiler.reference.segments import (
    INPUT,
    MLP,
    Layer,
    Segment,
    checkpointed,
    first_layers,
    segments,
    split_segments,
)
from asap.models import Architecture
from asap.plans.remat import Offload, Policy


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


Residual = Float[Array, "batch sequence d_model"]
Heads = Float[Array, "batch heads sequence head_dim"]
Weights = dict[str, Any]
"""Arrays of one layer by name; their shapes are those of :func:`parameter_tree`, without the repeats."""

_EPSILON = 1e-5
_ROTARY_BASE = 10_000.0


@dataclass(frozen=True)
class Decoder:
    """A decoder on a mesh. ``dtype`` is that of the computation; ``microbatches`` are those of a pipeline.

    ``offload`` is what the plan keeps in host memory; the training step handles the optimizer's part. The logits of
    ``loss_chunks`` are computed one chunk after the other; each gathers the head unless ``head_gathered_once``.
    ``lines`` are those of a mapping program.
    """

    model: Architecture
    layout: LogicalMesh
    remat: Policy
    dtype: Any
    microbatches: int = 1
    capacity_factor: float = 1.0
    offload: tuple[Offload, ...] = ()
    loss_chunks: int = 1
    head_gathered_once: bool = False
    scanned: bool = True
    weight_dtype: Any = "float32"
    lines: ProgramLines = NO_LINES

    def parameters(self) -> dict[str, Any]:
        """Every parameter as a tree of :class:`Parameter`."""
        return parameter_tree(self.model, self._segments(), self.lines)

    def loss(
        self, parameters: dict[str, Any], tokens: Int[Array, "batch sequence"], targets: Int[Array, "batch sequence"]
    ) -> Float[Array, ""]:
        """Mean cross-entropy."""
        x = jnp.take(parameters["embedding"].astype(self.dtype), tokens, axis=0)
        x = self._residual(x, 0)
        parts = self._segments()
        for first, segment, weights in zip(first_layers(parts), parts, parameters["segments"], strict=True):
            x = self._segment(first, segment, weights, x)
        x = _rms_norm(x, parameters["norm"])
        return cross_entropy(
            self.layout, x, self._head(parameters), targets, self.loss_chunks, self.head_gathered_once,
            self.lines.said("constrain", "logits"),
        )  # fmt: skip

    def _head(self, parameters: dict[str, Any]) -> Float[Array, "d_model vocab"]:
        """The output matrix, gathered where several axes together divide its width as finely as one its vocabulary.

        Left to itself, XLA then brings the logits' gradients of the whole batch together: 9.3 GiB for Qwen3 30B-A3B on
        data=4 seq=2 model=8. A loss in parts holds no more than those of a part.
        """
        name = "embedding" if self.model.tied_embeddings else "head"
        head = (parameters[name].T if self.model.tied_embeddings else parameters[name]).astype(self.dtype)
        width, vocabulary = (
            tuple(map(self.layout.degree, self.layout.axes(length, dimension)))
            for length, dimension in zip(head.shape, ("embed", "vocabulary"), strict=True)
        )
        alike = len(width) > 1 and math.prod(width) == math.prod(vocabulary)
        gathers = alike and self.loss_chunks == 1 and not self.lines.said("shard", name)
        return self.layout.constrain(head, None, "vocabulary") if gathers else head

    def _segments(self) -> tuple[Segment, ...]:
        return split_segments(segments(self.model, self.scanned), self.lines.cuts)

    def _segment(self, first: int, segment: Segment, weights: list[Weights], x: Residual) -> Residual:

        def layers(x: Residual, weights: list[Weights]) -> Residual:
            for index, (layer, layer_weights) in enumerate(zip(segment.block, weights, strict=True), first):
                x = self._apply(layer, index, layer_weights, x)
            return x

        remat = self.lines.remat(first) or self.remat
        rematerialised = checkpointed(layers, remat, self.offload)

        def block(x: Residual, weights: list[Weights]) -> tuple[Residual, None]:
            return rematerialised(x, weights), None

        if self.layout.degree("stage") > 1:
            return run_pipeline(self.layout, block, weights, x, self.microbatches)
        return jax.lax.scan(block, x, weights)[0]

    def _apply(self, layer: Layer, index: int, weights: Weights, x: Residual) -> Residual:
        x = checkpoint_name(x, INPUT)
        inner = self._normed(x, weights["attention_norm"], index)
        attended = self._attention(layer, index, weights, inner)
        if self.model.parallel_block:
            return self._residual(x + (attended + self._feed_forward(layer, weights, inner)), index)
        x = self._residual(x + attended, index)
        normed = self._normed(x, weights["mlp_norm"], index)
        return self._residual(x + self._feed_forward(layer, weights, normed), index)

    def _feed_forward(self, layer: Layer, weights: Weights, x: Residual) -> Residual:
        if not layer.routed:
            return self._mlp(weights, x, "bs")
        names = [name for name in MLP if f"expert_{name}" in weights]
        experts = {name: weights[f"expert_{name}"] for name in names}
        out = moe_layer(
            self.layout, x, weights["router"].astype(self.dtype), experts,
            self.model.experts_per_token, self.capacity_factor, lambda x, weights: self._mlp(weights, x, "bnec", "e"),
        )  # fmt: skip
        return out + self._mlp(weights, x, "bs") if "up" in weights else out

    def _attention(self, layer: Layer, index: int, weights: Weights, x: Residual) -> Residual:
        def project(name: str) -> Heads:
            weight = self._whole_heads(weights[name].astype(self.dtype))
            return checkpoint_name(jnp.einsum("bsd,dhk->bhsk", x, weight), name)

        query, key, value = project("query"), project("key"), project("value")
        if self.model.qk_norm:
            query, key = _rms_norm(query, weights["query_norm"]), _rms_norm(key, weights["key_norm"])
        said = self.lines.said("constrain", "query", index)
        query = self.layout.constrain(query, "batch", "heads", "sequence", None, said=said)
        context = attend(self.layout, _apply_rope(query), _apply_rope(key), value, layer.window)
        return checkpoint_name(jnp.einsum("bhsk,hkd->bsd", context, weights["out"].astype(self.dtype)), "out")

    def _whole_heads(self, weight: Float[Array, "d_model heads head_dim"]) -> Float[Array, "d_model heads head_dim"]:
        """The weight, gathered where the tensor axis does not divide its heads.

        Left to itself, XLA brings the whole batch together in the backward pass if the FSDP axis is as long as the
        tensor axis: 16 GiB for Llama 3.1 8B on 16 x 16 devices.
        """
        divided = weight.shape[1] % self.layout.degree("model") == 0
        return weight if divided else self.layout.constrain(weight, None, None, None)

    def _mlp(
        self, weights: Weights, x: Float[Array, "*tokens d_model"], tokens: str, experts: str = ""
    ) -> Float[Array, "*tokens d_model"]:
        """The MLP; ``tokens`` and ``experts`` are the einsum letters of the dimensions of the same name."""

        def times(x: Float[Array, "*tokens inputs"], name: str, formula: str) -> Float[Array, "*tokens outputs"]:
            return checkpoint_name(jnp.einsum(formula, x, weights[name].astype(self.dtype)), name)

        project_up = f"{tokens}d,{experts}df->{tokens}f"
        up = times(x, "up", project_up)
        hidden = jax.nn.silu(times(x, "gate", project_up)) * up if "gate" in weights else jax.nn.gelu(up)
        return times(hidden, "down", f"{tokens}f,{experts}fd->{tokens}d")

    def _residual(self, x: Residual, index: int) -> Residual:
        said = self.lines.said("constrain", "residual", index)
        return self.layout.constrain(x, "batch", "sequence", "residual", said=said)

    def _normed(self, x: Residual, scale: Float[Array, " d_model"], index: int) -> Residual:
        """Normalised input of a block; with a tensor axis sharded like the residual stream, as in MaxText."""
        normed = _rms_norm(x, scale)
        return self._residual(normed, index) if self.layout.degree("model") > 1 else normed


def _rms_norm(x: Float[Array, "*rest width"], scale: Float[Array, " width"]) -> Float[Array, "*rest width"]:
    """RMSNorm (arXiv:1910.07467), computed in float32."""
    exact = x.astype(jnp.float32)
    mean = jnp.mean(exact * exact, axis=-1, keepdims=True)
    return (exact * jax.lax.rsqrt(mean + _EPSILON) * scale).astype(x.dtype)


def _apply_rope(x: Heads) -> Heads:
    """Rotary positions (arXiv:2104.09864)."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[2])[:, None] * _ROTARY_BASE ** (-jnp.arange(half) / half)
    cosine, sine = jnp.cos(angle).astype(x.dtype), jnp.sin(angle).astype(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)
