"""What a mapping program decides for a distributed algorithm, with the textbook's choice where it says nothing."""

from dataclasses import dataclass

from asap.mapping.algorithm import ALGORITHMS, textbook_grid
from asap.mapping.language.program import Program, Setting, TensorSetting


@dataclass(frozen=True)
class Choices:
    """The decisions of one algorithm.

    Args:
        algorithm: one of :data:`ALGORITHMS`.
        grid: devices along each axis of the grid.
        exchange: how blocks or halos travel; empty where the algorithm has one way.
        stationary: the operand that SUMMA leaves where it is.
        panels: pieces in which the contracted dimension is sent.
        halo: cells of the halo, and steps between two exchanges.
        overlap: whether the compiler may run transfers beside compute.
        by_column: arrays stored by column, a field after the other.
    """

    algorithm: str
    grid: tuple[int, ...]
    exchange: str = ""
    stationary: str = "C"
    panels: int = 1
    halo: int = 1
    overlap: bool = True
    by_column: frozenset[str] = frozenset()

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of the grid."""
        return ALGORITHMS[self.algorithm].grid


def choices_of(program: Program, devices: int) -> Choices:
    """The choices of a checked program.

    Args:
        program: names an algorithm.
        devices: of the machine; decides the grid where no line does.
    """
    chosen = program.setting("algorithm")
    assert chosen is not None, "a program without an algorithm"
    algorithm = ALGORITHMS[chosen.word]
    grid, overlap = program.setting("grid"), program.setting("overlap")
    exchange, stationary = program.setting("exchange"), program.setting("stationary")
    way = exchange.word if exchange else next(iter(algorithm.exchanges), "")
    return Choices(
        algorithm=chosen.word,
        grid=_counts(grid) or textbook_grid(chosen.word, devices, way) or (devices,),
        exchange=way,
        stationary=stationary.word if stationary else "C",
        panels=_count(program.setting("panels")),
        halo=_count(program.setting("halo")),
        overlap=overlap is None or overlap.word == "on",
        by_column=frozenset(
            name.text
            for line in program.decisions
            if isinstance(line, TensorSetting) and line.keyword == "layout" and line.value.text == "col"
            for name in line.names
        ),
    )


def _counts(setting: Setting | None) -> tuple[int, ...]:
    return tuple(count.value for count in setting.counts) if setting else ()


def _count(setting: Setting | None) -> int:
    return setting.counts[0].value if setting else 1
