"""A program as it was written: one decision a line. Positions do not count when programs are compared."""

from dataclasses import dataclass, field
from typing import Literal

from asap.mapping.language.expression import Expression
from asap.mapping.language.feedback import Position
from asap.plans.axes import Network


@dataclass(frozen=True)
class Word:
    """A name, a pattern or one of the language's words."""

    text: str
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Count:
    """A whole number; of layers and in expressions it may be zero."""

    value: int
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Degree:
    """Devices along one axis of the mesh, inside a slice or between slices."""

    network: Network
    axis: Word
    degree: Count


@dataclass(frozen=True)
class Mesh:
    """The axes of the mesh and their degrees."""

    degrees: tuple[Degree, ...]
    at: Position = field(compare=False)

    def total(self, axis: str) -> int:
        """Devices along an axis over both networks; 1 for one that the mesh does not have."""
        found = 1
        for degree in self.degrees:
            found *= degree.degree.value if degree.axis.text == axis else 1
        return found

    @property
    def axes(self) -> tuple[str, ...]:
        """Every axis once, in the order of the line."""
        return tuple(dict.fromkeys(degree.axis.text for degree in self.degrees))


@dataclass(frozen=True)
class Walk:
    """Devices in the order of rows, of columns, or of rows along folded axes."""

    kind: Literal["row", "col", "fold"]


@dataclass(frozen=True)
class Block:
    """Devices block by block, each in the order of rows."""

    sides: tuple[Count, ...]


@dataclass(frozen=True)
class IndexMap:
    """The place of the device at given coordinates of the torus: ``f(i,j) = i*4 + j``."""

    parameters: tuple[Word, ...]
    expression: Expression


@dataclass(frozen=True)
class Order:
    """Which device of the torus stands where in the mesh."""

    by: Walk | Block | IndexMap
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Layers:
    """A range of layers, from 0, both ends included."""

    first: Count
    last: Count

    @property
    def at(self) -> Position:
        """Where both numbers stand."""
        return self.first.at.to(self.last.at)


@dataclass(frozen=True)
class Sharding:
    """Mesh axes over which tensors (``shard``) or activations (``constrain``) are split along one dimension."""

    keyword: Literal["shard", "constrain"]
    names: tuple[Word, ...]
    dimension: Word
    axes: tuple[Word, ...]
    layers: Layers | None
    at: Position = field(compare=False)


@dataclass(frozen=True)
class TensorSetting:
    """Memory kind, layout or type of tensors; ``remat`` is one of layers and has no names."""

    keyword: Literal["place", "layout", "dtype", "remat"]
    names: tuple[Word, ...]
    value: Word
    layers: Layers | None
    at: Position = field(compare=False)


Keyword = Literal[
    "microbatches",
    "pipeline_repeats",
    "loss_chunks",
    "first_moment",
    "weight_precision",
    "algorithm",
    "grid",
    "stationary",
    "panels",
    "exchange",
    "replication",
    "halo",
    "overlap",
]


@dataclass(frozen=True)
class Setting:
    """A decision that a program makes once."""

    keyword: Keyword
    value: Word | Count | tuple[Count, ...]
    at: Position = field(compare=False)

    @property
    def counts(self) -> tuple[Count, ...]:
        """The numbers of the value; none if it is a word."""
        if isinstance(self.value, tuple):
            return self.value
        return (self.value,) if isinstance(self.value, Count) else ()

    @property
    def word(self) -> str:
        """The word that is the value; empty if it is a number."""
        return self.value.text if isinstance(self.value, Word) else ""


Decision = Mesh | Order | Sharding | TensorSetting | Setting


@dataclass(frozen=True)
class Line:
    """One line: a decision, a comment, both or nothing."""

    decision: Decision | None = None
    comment: str = ""


@dataclass(frozen=True)
class Program:
    """A program of the mapping language."""

    lines: tuple[Line, ...]
    unread: bool = field(default=False, compare=False)
    """Whether a line could not be read. It is not among the lines; what seems to be missing may stand there."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What the program decides, in the order of its lines."""
        return tuple(line.decision for line in self.lines if line.decision is not None)

    @property
    def mesh(self) -> Mesh | None:
        """The mesh, if the program says one."""
        return next((decision for decision in self.decisions if isinstance(decision, Mesh)), None)

    @property
    def order(self) -> Order | None:
        """The order of devices, if the program says one."""
        return next((decision for decision in self.decisions if isinstance(decision, Order)), None)

    def setting(self, keyword: Keyword) -> Setting | None:
        """A decision that is made once, if it is made."""
        return next((d for d in self.decisions if isinstance(d, Setting) and d.keyword == keyword), None)
