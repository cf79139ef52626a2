"""The layers of a decoder as loops over identical blocks, each block a short pattern of layers.

A scan over blocks compiles once however many layers there are. A block is longer than one layer where dense and MoE
layers, or local and global attention, alternate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from asap.core.errors import PlanError
from asap.models import Architecture
from asap.models.architecture import pattern_length
from asap.plans import Remat
from asap.plans.remat import POLICIES, SAVED, Offload, Policy, SavedTensors


@dataclass(frozen=True)
class Layer:
    """What distinguishes one layer from another."""

    routed: bool
    window: int | None


@dataclass(frozen=True)
class Segment:
    """A block of layers, repeated."""

    block: tuple[Layer, ...]
    repeats: int


def segments(model: Architecture, scanned: bool = True) -> tuple[Segment, ...]:
    """The layers of a decoder, first to last; each a segment of its own if they are not scanned."""
    layers = [_layer(model, index) for index in range(model.layers or 0)]
    if not scanned:
        return tuple(Segment((layer,), 1) for layer in layers)
    leading = min(model.leading_dense_layers, len(layers)) if model.is_moe else 0
    head, body = layers[:leading], layers[leading:]
    return tuple(segment for part in (head, body) for segment in _loops(part, pattern_length(model)))


def first_layers(parts: Sequence[Segment]) -> list[int]:
    """The index of the first layer of each segment."""
    found = [0]
    for part in parts:
        found.append(found[-1] + len(part.block) * part.repeats)
    return found[:-1]


def split_segments(parts: Sequence[Segment], cuts: Sequence[int]) -> tuple[Segment, ...]:
    """The same layers in segments that begin at some layers; blocks that are cut become single layers."""
    return tuple(
        piece
        for first, part in zip(first_layers(parts), parts, strict=True)
        for piece in _pieces(part, [cut - first for cut in cuts])
    )


def _pieces(part: Segment, cuts: Sequence[int]) -> Iterator[Segment]:
    length = len(part.block)
    total = length * part.repeats
    inside = {cut for cut in cuts if 0 < cut < total}
    ends = sorted(
        {0, total} | inside | {c // length * length for c in inside} | {-(-c // length) * length for c in inside}
    )
    for low, high in pairwise(ends):
        if low % length or (high - low) % length:
            yield from (Segment((part.block[layer % length],), 1) for layer in range(low, high))
        else:
            yield Segment(part.block, (high - low) // length)


def _layer(model: Architecture, index: int) -> Layer:
    after = index - model.leading_dense_layers
    routed = model.is_moe and after >= 0 and (after + 1) % model.moe_every == 0
    every = model.global_layer_every
    local = model.sliding_window is not None and (every is None or (index + 1) % every != 0)
    return Layer(routed, model.sliding_window if local else None)


def _loops(layers: list[Layer], period: int) -> list[Segment]:
    if len(set(layers)) == 1:
        return [Segment((layers[0],), len(layers))]
    whole = len(layers) // period * period
    loops = [Segment(tuple(layers[:period]), whole // period)] if whole else []
    return loops + [Segment((layer,), 1) for layer in layers[whole:]]


INPUT = "layer_input"
MLP = ("gate", "up", "down")


def offloaded(remat: Policy, offload: Sequence[Offload]) -> tuple[str, ...]:
    """What is saved in host memory: tensors of the policy, and inputs of layers, as in Google's recipes for v6e."""
    tensors = _saved(remat)
    inputs = remat is Remat.OFFLOAD or ("activations" in offload and tensors is not None)
    return (*((INPUT,) if inputs else ()), *(tensors.host if tensors else ()))


def checkpointed(function: Callable[..., Any], remat: Policy, offload: Sequence[Offload]) -> Callable[..., Any]:
    """The function of a block of layers, with a backward pass that recomputes what the policy does not save.

    A policy that has no name saves the input of each layer.
    """
    import jax

    policies = jax.checkpoint_policies
    tensors = _saved(remat)
    if remat is Remat.NONE:
        return function
    moved = offloaded(remat, offload)
    kept = () if tensors is None else tensors.device if remat in POLICIES.values() else (INPUT, *tensors.device)
    if tensors is None:
        policy = policies.save_anything_except_these_names("context")
    elif moved:
        policy = policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[one for one in kept if one not in moved],
            names_which_can_be_offloaded=list(moved), offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip
    else:
        policy = policies.save_only_these_names(*kept)
    return jax.checkpoint(function, policy=policy, prevent_cse=False)


def _saved(remat: Policy) -> SavedTensors | None:
    """Tensors that a policy saves; ``None`` where it saves all but some: ``none``, and ``selective`` all but what
    attention writes."""
    if isinstance(remat, SavedTensors):
        return remat
    if isinstance(remat, Remat):
        return SAVED.get(remat)
    reason = f"the reference step recomputes neither single modules nor some of the layers: remat={remat}"
    raise PlanError(reason, hint="give a --plan that has remat=full")
