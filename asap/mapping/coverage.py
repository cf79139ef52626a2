"""Which tensors of which layers a line speaks of, and which line holds where several do.

The line that covers less holds: ``shard embedding …`` over ``shard * …``, ``in layers 0..3`` over a line for all. Two
lines that overlap, of which neither lies inside the other, have to agree.
"""

import fnmatch
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from asap.mapping.language.grammar import STATES
from asap.mapping.language.program import Program, Sharding, TensorSetting

LAYER = "layer"
"""What lines on rematerialisation speak of: not a tensor, but the layer itself."""


@dataclass(frozen=True)
class Dimension:
    """One dimension of a tensor.

    Args:
        name: as lines call it; empty for one that is never split.
        length: elements; ``None`` is unknown.
        axes: mesh axes that split it unless a line says otherwise, as far as they divide it.
    """

    name: str = ""
    length: int | None = None
    axes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tensor:
    """A parameter or an activation; ``layers`` are those that have it with this shape, none for one outside."""

    name: str
    dimensions: tuple[Dimension, ...] = ()
    layers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Target:
    """A model whose training step is mapped.

    Args:
        name: of the model.
        axes: every axis that the mesh may have.
        parameters: its weights.
        activations: points where an activation may be constrained.
        layers: of the decoder.
        weight_precision: type of parameters of which no line says another.
    """

    name: str
    axes: tuple[str, ...]
    parameters: tuple[Tensor, ...]
    activations: tuple[Tensor, ...]
    layers: int
    weight_precision: str = "fp32"

    def tensors(self, keyword: str) -> tuple[Tensor, ...]:
        """What lines with a keyword may name; for ``remat`` the layers themselves."""
        if keyword == "constrain":
            return self.activations
        if keyword == "remat":
            return (Tensor(LAYER, (), tuple(range(self.layers))),)
        return self.parameters + (tuple(Tensor(state) for state in STATES) if keyword == "place" else ())


Line = Sharding | TensorSetting


@dataclass(frozen=True)
class Place:
    """A tensor in consecutive layers that no range tells apart; ``layers`` is ``None`` outside of layers."""

    tensor: Tensor
    layers: tuple[int, int] | None


class Coverage:
    """The places of a target that the lines with one keyword may speak of; a set of them is a bit mask."""

    def __init__(self, target: Target, keyword: str, program: Program):
        lines = [line for line in program.decisions if isinstance(line, Line) and line.keyword == keyword]
        cuts = {0, target.layers}
        for layers in (line.layers for line in lines if line.layers is not None):
            cuts |= {layers.first.value, layers.last.value + 1}
        spans = [(low, high - 1) for low, high in pairwise(sorted(cut for cut in cuts if cut <= target.layers))]
        self.places = tuple(
            Place(tensor, span) for tensor in target.tensors(keyword) for span in _spans_of(tensor, spans)
        )
        self._masks: dict[object, int] = {}
        self.lines = tuple((line, found) for line in lines if (found := self._mask(line)))

    def holding(self, dimension: str | None = None) -> dict[int, Line]:
        """For each place, by its bit, the line that holds for a dimension."""
        found: dict[int, Line] = {}
        left = (1 << len(self.places)) - 1
        lines = [(line, covered) for line, covered in self.lines if _dimension(line) == dimension]
        for line, covered in sorted(lines, key=lambda each: each[1].bit_count()):
            new = covered & left
            left &= ~covered
            while new:
                found[new.bit_length() - 1] = line
                new ^= 1 << (new.bit_length() - 1)
        return found

    def _mask(self, line: Line) -> int:
        """The places that a line speaks of."""
        names, layers, dimension = tuple(name.text for name in line.names), line.layers, _dimension(line)
        span = layers and (layers.first.value, layers.last.value)
        return (
            self._where(
                ("names", names), lambda place: not names or any(matches(name, place.tensor.name) for name in names)
            )
            & self._where(("layers", span), lambda place: span is None or _is_inside(place, span))
            & self._where(
                ("dimension", dimension),
                lambda place: dimension is None or dimension in {each.name for each in place.tensor.dimensions},
            )
        )

    def _where(self, key: object, holds: Callable[[Place], bool]) -> int:
        if key not in self._masks:
            self._masks[key] = sum(1 << bit for bit, place in enumerate(self.places) if holds(place))
        return self._masks[key]


def matches(pattern: str, name: str) -> bool:
    """Whether a name is of a pattern; the states of a step are no tensors, and only their own names mean them."""
    return pattern == name or (name not in STATES and "*" in pattern and fnmatch.fnmatchcase(name, pattern))


def contradictions(lines: Iterable[tuple[Line, int]]) -> list[tuple[Line, Line]]:
    """Pairs of lines that overlap without one lying inside the other, and do not agree; the later one first."""
    groups: dict[str | None, dict[tuple[object, int], Line]] = {}
    for line, covered in lines:
        groups.setdefault(_dimension(line), {}).setdefault((value_of(line), covered), line)
    return [
        (later, earlier)
        for group in groups.values()
        for number, ((value, covered), later) in enumerate(group.items())
        for (other, other_covered), earlier in list(group.items())[:number]
        if value != other and _crosses(covered, other_covered)
    ]


def layers_of(place: Place) -> list[int | None]:
    """The layers of a place that have its tensor; ``None`` stands for outside of layers."""
    if place.layers is None:
        return [None]
    first, last = place.layers
    return [layer for layer in place.tensor.layers if first <= layer <= last]


def value_of(line: Line) -> tuple[str, ...]:
    """What a line decides."""
    return tuple(axis.text for axis in line.axes) if isinstance(line, Sharding) else (line.value.text,)


def _is_inside(place: Place, span: tuple[int, int]) -> bool:
    return place.layers is not None and span[0] <= place.layers[0] and place.layers[1] <= span[1]


def _crosses(one: int, other: int) -> bool:
    if one == other:
        return True
    return bool(one & other) and bool(one & ~other) and bool(other & ~one)


def _dimension(line: Line) -> str | None:
    return line.dimension.text if isinstance(line, Sharding) else None


def _spans_of(tensor: Tensor, spans: list[tuple[int, int]]) -> list[tuple[int, int] | None]:
    if not tensor.layers:
        return [None]
    return [span for span in spans if any(span[0] <= layer <= span[1] for layer in tensor.layers)]
