"""An answer as blocks, in the order of its fields, which every form of it draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from pydantic import BaseModel

from asap.answers.figure import DETAIL, LINE, Figure
from asap.core.text import plain
from asap.core.units import Provenance, Quantity, significant
from asap.reports.phrases import written


@dataclass(frozen=True)
class Facts:
    """Labels with their values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """A heading, columns and rows; columns in which nothing is known are left out."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    basis: str = ""
    """Provenance of its figures, where all have the same."""


@dataclass(frozen=True)
class Bullets:
    """Sentences under a heading."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Paste:
    """Lines to paste."""

    title: str
    lines: tuple[str, ...]


Block = Facts | Table | Bullets | Paste


def blocks_of(answer: BaseModel) -> tuple[Block, ...]:
    """The blocks of an answer, without what is unknown or empty."""
    return tuple(_joined(_blocks(answer))) or (Facts((("found", "nothing"),)),)


def _blocks(answer: BaseModel) -> Iterator[Block]:
    for name, info in type(answer).model_fields.items():
        value, title = getattr(answer, name), label(name)
        extra = info.json_schema_extra
        if value is None or value == () or value == "":
            continue
        if isinstance(extra, dict) and extra.get("role") == LINE:
            yield Paste(title, tuple(value))
        elif isinstance(value, tuple) and isinstance(value[0], BaseModel):
            yield table_of(title, value)
        elif isinstance(value, tuple):
            yield Bullets(title, tuple(plain(one) for one in value))
        elif isinstance(value, BaseModel) and not isinstance(value, Quantity):
            yield Facts(_facts_of(title, value))
        else:
            yield Facts(((title, cell(value, with_basis=True)),))


def _facts_of(title: str, part: BaseModel) -> tuple[tuple[str, str], ...]:
    """A section on its own: its first field under the title, the others under theirs."""
    rows = [(name, cell(value, with_basis=True)) for name, value in _cells(part) if value not in (None, "", ())]
    called = dict(rows).get("name", "")
    first, *rest = [(label(name), text) for name, text in rows if name != "name"] or [(title, "")]
    value = f"{called}: {first[1]}" if called not in ("", title) else first[1]
    return ((title, value), *rest)


def _joined(blocks: Iterator[Block]) -> Iterator[Block]:
    """Facts that follow each other, in one block."""
    rows: list[tuple[str, str]] = []
    for block in blocks:
        if isinstance(block, Facts):
            rows += block.rows
            continue
        if rows:
            yield Facts(tuple(rows))
            rows = []
        yield block
    if rows:
        yield Facts(tuple(rows))


def table_of(title: str, rows: Sequence[BaseModel]) -> Table:
    """Rows of one kind; a nested row gives its own columns."""
    several = len(rows) > 1
    flat = [dict(_cells(row, brief=several)) for row in rows]
    columns = [name for name in dict.fromkeys(name for row in flat for name in row) if _holds(flat, name)]
    kinds = {one.provenance for row in rows for one in _quantities(row)}
    basis = next(iter(kinds)).value if len(kinds) == 1 else ""
    return Table(
        title=title,
        columns=tuple(map(label, columns)),
        rows=tuple(tuple(_text(row.get(name), mark=len(kinds) > 1) for name in columns) for row in flat),
        basis=basis,
    )


def _cells(row: BaseModel, *, brief: bool = False) -> Iterator[tuple[str, object]]:
    for name, info in type(row).model_fields.items():
        value, extra = getattr(row, name), info.json_schema_extra
        if brief and isinstance(extra, dict) and extra.get("role") == DETAIL:
            continue
        if isinstance(value, BaseModel) and not isinstance(value, Quantity):
            yield from _cells(value, brief=brief)
        else:
            yield name, value


def _quantities(row: BaseModel) -> Iterator[Quantity]:
    return (value for _, value in _cells(row) if isinstance(value, Quantity))


def _holds(rows: Sequence[dict[str, object]], name: str) -> bool:
    return any((value := row.get(name)) not in (None, "", ()) and value is not False for row in rows)


def _text(value: object, *, mark: bool) -> str:
    """In a table only what is not modelled is marked, where figures of several kinds stand in it."""
    marked = mark and isinstance(value, Quantity) and value.provenance is not Provenance.MODELLED
    return cell(value, with_basis=marked)


def cell(value: object, *, with_basis: bool = False) -> str:
    """One value in words, on one line."""
    if value is None:
        return ""
    if isinstance(value, Quantity):
        return f"{written(value, brief=True)}{f', {value.provenance.value}' if with_basis else ''}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, float):
        return significant(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        return ", ".join(cell(one) for one in value)
    return plain(value)


_LABELS = {
    "vs_now": "against now", "kpis": "KPIs", "fits_odds": "fits", "faster_odds": "faster", "saves": "expected saving",
}  # fmt: skip
_SHORT = ("hbm", "mfu", "hlo", "id")


def label(name: str) -> str:
    """A field's name as a report writes it."""
    words = (word.upper() if word in _SHORT else word for word in name.split("_"))
    return _LABELS.get(name) or " ".join(words)


def figures_of(answer: object) -> Iterator[Figure]:
    """Every figure of an answer."""
    if isinstance(answer, Figure):
        yield answer
    elif isinstance(answer, BaseModel):
        for name in type(answer).model_fields:
            yield from figures_of(getattr(answer, name))
    elif isinstance(answer, tuple | list):
        for one in answer:
            yield from figures_of(one)
