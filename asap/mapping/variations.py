"""Programs that differ from one in how a group of tensors is split, or in what a range of layers recomputes.

Groups are what people map apart: the experts, the MLP and the attention of all layers, the head, the embedding.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TypeGuard

from asap.hardware import Slice
from asap.mapping.check import check
from asap.mapping.language.format import format_decision
from asap.mapping.language.parse import parse
from asap.mapping.language.program import Decision, Program, Sharding, TensorSetting
from asap.mapping.sharding import shardings
from asap.mapping.target import Target
from asap.plans.remat import Policy

GROUPS: Mapping[str, tuple[str, ...]] = {
    "experts": ("expert_gate", "expert_up", "expert_down"),
    "MLP": ("gate", "up", "down"),
    "queries": ("query", "out"),
    "keys and values": ("key", "value"),
    "head": ("head",),
    "embedding": ("embedding",),
}
_MOST_AXES = 2


@dataclass(frozen=True)
class Variation:
    """A program, and what it changes."""

    text: str
    what: str


def split_otherwise(text: str, target: Target, hardware: Slice) -> Iterator[Variation]:
    """Every program that splits one dimension of one group over other axes and passes the checks.

    Args:
        text: a checked program with a mesh.
        target: the model.
        hardware: the machine.
    """
    program = parse(text)[0]
    mesh = program.mesh
    axes = [axis for axis in mesh.axes if mesh.total(axis) > 1] if mesh else []
    choices = list(chain.from_iterable(combinations(axes, count) for count in range(_MOST_AXES + 1)))
    seen = {_splits(program, target)}
    for group, dimension, names in _groups(target):
        rest = _without(program, lambda line, n=names, d=dimension: _is_about(line, n, d))
        for over in choices:
            axes_said = ", ".join(over) or "none"
            varied = f"{rest}shard {', '.join(names)} by {dimension} over {axes_said}\n"
            checked = check(varied, target, hardware)
            splits = _splits(checked.program, target)
            if not checked.feedback and splits not in seen:
                seen.add(splits)
                yield Variation(varied, f"{group}: {dimension} over {axes_said}")


def first_layers_recompute(text: str, policy: Policy, layers: int, target: Target) -> str:
    """The program with a policy of their own for so many first layers, instead of all its ranges of policies."""
    if layers == target.layers:
        return f"{_without(parse(text)[0], _is_policy)}remat {policy}\n"
    rest = _without(parse(text)[0], lambda line: _is_policy(line) and line.layers is not None)
    return f"{rest}remat {policy} in layers 0..{layers - 1}\n" if layers else rest


def _groups(target: Target) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each group with each dimension that its tensors have, and the tensors that have it."""
    for group, members in GROUPS.items():
        tensors = [tensor for tensor in target.parameters if tensor.name in members]
        for dimension in dict.fromkeys(d.name for tensor in tensors for d in tensor.dimensions if d.name):
            held = (tensor.name for tensor in tensors if any(d.name == dimension for d in tensor.dimensions))
            yield group, dimension, tuple(dict.fromkeys(held))


def _splits(program: Program, target: Target) -> tuple[object, ...]:
    """How every parameter lies, comparable between programs."""
    return tuple(
        (found.place.tensor.name, found.place.layers, *(split.axes for split in found.splits))
        for found in shardings(target, program, "shard")
    )


def _without(program: Program, leaves_out: Callable[[Decision], bool]) -> str:
    lines = (format_decision(decision) for decision in program.decisions if not leaves_out(decision))
    return "".join(f"{line}\n" for line in lines)


def _is_about(line: Decision, names: tuple[str, ...], dimension: str) -> bool:
    return (
        isinstance(line, Sharding)
        and line.keyword == "shard"
        and line.dimension.text == dimension
        and tuple(name.text for name in line.names) == names
    )


def _is_policy(line: Decision) -> TypeGuard[TensorSetting]:
    return isinstance(line, TensorSetting) and line.keyword == "remat"
