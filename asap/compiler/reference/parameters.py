"""The parameters of the reference decoder: their shapes and the names of their dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from asap.compiler.reference.layout import ProgramLines, Said
from asap.compiler.reference.segments import MLP, Layer, Segment, first_layers
from asap.models import Architecture


@dataclass(frozen=True)
class Stored:
    """How a parameter is kept: the words of a mapping program; each is empty where no line says it."""

    memory: str = ""
    layout: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class Parameter:
    """Shape of a parameter, the names of its dimensions, and what a mapping program says of it."""

    shape: tuple[int, ...]
    names: tuple[str | None, ...]
    said: Said = field(default_factory=dict, compare=False)
    stored: Stored = Stored()


def parameter_tree(
    model: Architecture, segments: Sequence[Segment], lines: ProgramLines | None = None
) -> dict[str, Any]:
    """Every parameter as a tree of :class:`Parameter`; those of a segment are stacked over its repeats."""
    tree = _tree(model, segments)
    return tree if lines is None else _add_lines(tree, segments, lines)


def _add_lines(tree: dict[str, Any], segments: Sequence[Segment], lines: ProgramLines) -> dict[str, Any]:
    """The tree with what a mapping program says; segments do not cross its ranges of layers."""

    def add_lines(name: str, found: Parameter, layer: int | None = None) -> Parameter:
        stored = Stored(*(lines.setting(keyword, name, layer) for keyword in ("place", "layout", "dtype")))
        return replace(found, said=lines.said("shard", name, layer), stored=stored)

    outside = {name: add_lines(name, found) for name, found in tree.items() if isinstance(found, Parameter)}
    inside = [
        [
            {name: add_lines(name, found, first + offset) for name, found in layer.items()}
            for offset, layer in enumerate(block)
        ]
        for first, block in zip(first_layers(segments), tree["segments"], strict=True)
    ]
    return tree | outside | {"segments": inside}


def _tree(model: Architecture, segments: Sequence[Segment]) -> dict[str, Any]:
    d_model, vocab = model.d_model or 0, model.vocab or 0
    tree: dict[str, Any] = {
        "embedding": Parameter((vocab, d_model), ("vocabulary", "embed")),
        "norm": Parameter((d_model,), (None,)),
        "segments": [[_layer(model, layer, one.repeats) for layer in one.block] for one in segments],
    }
    if not model.tied_embeddings:
        tree["head"] = Parameter((d_model, vocab), ("embed", "vocabulary"))
    return tree


def _layer(model: Architecture, layer: Layer, repeats: int) -> dict[str, Parameter]:
    d_model, heads, kv_heads, head_dim = (n or 0 for n in (model.d_model, model.heads, model.kv_heads, model.head_dim))

    def stacked(shape: tuple[int, ...], *names: str | None) -> Parameter:
        return Parameter((repeats, *shape), ("layers", *names))

    tree = {
        "attention_norm": stacked((d_model,), None),
        "query": stacked((d_model, heads, head_dim), "embed", "heads", None),
        "key": stacked((d_model, kv_heads, head_dim), "embed", "heads", None),
        "value": stacked((d_model, kv_heads, head_dim), "embed", "heads", None),
        "out": stacked((heads, head_dim, d_model), "heads", None, "embed"),
    }
    if not model.parallel_block:
        tree["mlp_norm"] = stacked((d_model,), None)
    if model.qk_norm:
        tree |= {"query_norm": stacked((head_dim,), None), "key_norm": stacked((head_dim,), None)}
    names = MLP if model.gated_mlp else MLP[1:]
    d_ff = (model.expert_d_ff or 0) * model.shared_experts if layer.routed else model.d_ff or 0
    for name in names if d_ff else ():
        shape, dims = (
            ((d_ff, d_model), ("hidden", "embed")) if name == "down" else ((d_model, d_ff), ("embed", "hidden"))
        )
        tree[name] = stacked(shape, *dims)
    if layer.routed:
        expert_d_ff, experts = model.expert_d_ff or 0, model.experts
        tree["router"] = stacked((d_model, experts), "embed", None)
        for name in names:
            down = name == "down"
            shape = (experts, expert_d_ff, d_model) if down else (experts, d_model, expert_d_ff)
            dims = ("hidden", "expert_embed") if down else ("expert_embed", "hidden")
            tree[f"expert_{name}"] = stacked(shape, "experts", *dims)
    return tree
