"""What the engine has answered in a session: figures by reference, plans by name, and words that may be repeated."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from asap.agents.grounding.compute import compute
from asap.agents.grounding.prose import named, numbers, plain_digits, sentences
from asap.answers.figure import CHANGE, Figure
from asap.core.errors import NotFoundError
from asap.core.text import plain
from asap.core.units import Provenance, Quantity

_PROSE = {
    "statement", "finding", "advice", "because", "correlation", "why", "verdict", "reasons", "trade_offs", "notes",
    "missing", "strategy", "expects", "check", "cause", "kind", "refused", "not_predicted", "ruled_out", "message",
}  # fmt: skip
"""Fields in which the engine itself writes text."""
_FOREIGN = {"text", "summary", "description", "hlo", "warnings", "title"}
"""Fields whose words others wrote: nothing in them is known."""
_LIBRARY = ("notes", "precedents")
DIMENSIONS = {"s": "s", "fraction": "share", "odds": "share", CHANGE: "share", "1": "ratio"}
NOW = "now"
CONVERSIONS = {60.0, 100.0, 1000.0, 1024.0, 3600.0}
"""Numbers of an expression that nobody has to say."""
_SAID = "said"
ODDS = frozenset({"odds", "likel", "probab", "chance"})
FIELDS: dict[str, tuple[str, frozenset[str]]] = {
    "mfu": ("share", frozenset({"mfu", "utilisation", "utilization"})),
    "communication": ("share", frozenset({"communication", "collective"})),
    "fits_odds": ("share", ODDS), "faster_odds": ("share", ODDS), "hbm": ("bytes", frozenset({"hbm", "memory"})),
}  # fmt: skip
"""What a field of a plan's row measures, and words that name it."""
_ROW_NAMES = ("fact", "name", "part", "cause")
_SHORTEST_NAME = 4
_PROBABLE = 0.7
"""A plan is said to fit from this probability on, as in `asap.prediction`."""


@dataclass
class Catalogue:
    """The answers of a session.

    Args:
        figures: by ID, and by the query and the place in its answer.
        plans: the subject of a plan's figures, by each name that the plan has.
        counts: whole numbers of the run, by field.
        names: words with digits that may be repeated, in lower case.
        lines: sentences of the engine.
        sources: IDs of notes and records.
        settings: ``key=value`` of what runs now.
        labels: what a figure is called, by its ID: a row's name, or words for its field.
        loose: figures that stand in the engine's sentences, or in what the engineer said.
        foreign: plans that text from files names.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    plans: dict[frozenset[str], str] = field(default_factory=dict)
    counts: dict[str, set[float]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    lines: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)
    labels: dict[str, set[str]] = field(default_factory=dict)
    loose: list[Figure] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def record(self, query: str, answer: BaseModel) -> None:
        """Remember an answer."""
        if query in _LIBRARY:
            self._library(query, answer)
            return
        measured = getattr(answer, "basis", "measured") == "measured" and query in {"bottleneck", "operations"}
        self._walk(answer, query, Provenance.MEASURED if measured else Provenance.MODELLED)
        if query == "run" and (plan := getattr(answer, "plan", None)):
            self.settings |= set(plan.split())
            self._name(plan, NOW)

    def hear(self, words: str) -> None:
        """Remember what the engineer said: it may be repeated, as stated."""
        self.names |= named(words)
        self._loose(words, Provenance.STATED, "the engineer")
        said = re.findall(r"(?<![\w.])\d{1,12}(?:\.\d{1,12})?", plain_digits(words))
        self.counts.setdefault(_SAID, set()).update(map(float, said))

    def subject(self, name: str) -> str | None:
        """The subject of a plan's figures, of which a rank, ``now`` or axes are names; ``None`` if nothing was said."""
        key = name.strip().lower()
        return NOW if key == NOW else self.plans.get(frozenset(key.replace(",", " ").split()))

    def look_up(self, reference: str) -> Figure:
        """The figure of a reference.

        Raises:
            NotFoundError: there is none.
        """
        subject, name = split(reference.strip())
        for key in (reference.strip(), f"{self.subject(subject)}.{name}", f"{subject}.measured_{name}"):
            if key in self.figures:
                return self.figures[key]
        near = [one for one in self.figures if one.endswith(f".{name}")][:3]
        hint = f"known: {', '.join(near)}" if near else "ask a tool for it"
        raise NotFoundError("no such figure", where=plain(reference, 80), hint=hint)

    def compute(self, expression: str) -> Figure:
        """The figure of a reference or of an expression over references; raises like :func:`compute` and look_up."""
        text = expression.strip()
        known = {value for values in self.counts.values() for value in values} | CONVERSIONS
        return compute(text, self.look_up, known) if " " in text else self.look_up(text)

    def all(self) -> Iterable[Figure]:
        """Every figure, those of the engine's sentences too."""
        return (*self.figures.values(), *self.loose)

    def fits(self, subject: str) -> bool | None:
        """Whether a plan is said to fit."""
        odds = self.figures.get(f"{subject}.fits_odds")
        return None if odds is None else odds.value >= _PROBABLE

    def _walk(self, model: BaseModel, path: str, kind: Provenance) -> None:
        own = [value for _, value in model if isinstance(value, Figure)]
        subjects = {split(one.id)[0] for one in own}
        if len(subjects) == 1:
            for name in (getattr(model, "plan", None), getattr(model, "name", None)):
                if isinstance(name, str) and name and ("=" in name or name.isdigit()):
                    self._name(name, next(iter(subjects)))
        of = [getattr(model, name, None) for name in _ROW_NAMES]
        called = {one.lower() for one in of if isinstance(one, str) and len(one) >= _SHORTEST_NAME}
        for one in own:
            if called:
                self.labels.setdefault(one.id, set()).update(called)
        for name, value in model:
            self._take(name, value, f"{path}.{name}", kind)

    def _take(self, name: str, value: Any, path: str, kind: Provenance) -> None:
        if isinstance(value, Figure):
            self.figures |= {value.id: value, path: value}
        elif isinstance(value, Quantity):
            self.figures[path] = Figure(id=path, **dict(value))
        elif isinstance(value, BaseModel):
            self._walk(value, path, kind)
        elif isinstance(value, tuple | list):
            for number, one in enumerate(value, 1):
                self._take(name, one, f"{path}.{number}", kind)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.counts.setdefault(name, set()).add(float(value))
        elif isinstance(value, str):
            self._read(name, value, kind, path)

    def _read(self, name: str, value: str, kind: Provenance, path: str) -> None:
        if name in _FOREIGN:
            self.foreign.append(value)
            return
        self.names |= named(value)
        if name in _PROSE:
            self.lines |= {normal(one) for one in sentences(value)}
            self._loose(value, kind, path)

    def _loose(self, words: str, kind: Provenance, source: str) -> None:
        for line in sentences(plain_digits(words)):
            for one in numbers(line, self.names)[0]:
                unit = {"share": "fraction", "ratio": "1", "": "1"}.get(one.dimension, one.dimension)
                self.loose.append(
                    Figure(id=f"said.{source}", value=one.value, unit=unit, provenance=kind, source=source)
                )

    def _name(self, name: str, subject: str) -> None:
        self.plans[frozenset(name.lower().split())] = subject
        if "=" in subject:
            self.plans[frozenset(subject.lower().split(","))] = subject

    def _library(self, query: str, answer: BaseModel) -> None:
        for item in getattr(answer, query, ()):
            self.sources.add(item.id)
            self.foreign.append(" ".join(str(value) for _, value in item if isinstance(value, str)))
            for name, value in item:
                if isinstance(value, Quantity):
                    self.figures[f"{item.id}.{name}"] = Figure(**{**dict(value), "id": f"{item.id}.{name}"})


class Catalogues:
    """What was answered of each experiment."""

    def __init__(self) -> None:
        self._of: dict[str, Catalogue] = {}
        self._heard: list[str] = []

    def of(self, experiment: str) -> Catalogue:
        """The catalogue of an experiment."""
        if experiment not in self._of:
            self._of[experiment] = Catalogue()
            for words in self._heard:
                self._of[experiment].hear(words)
        return self._of[experiment]

    def hear(self, words: str) -> None:
        """What the engineer said, of whichever experiment."""
        self._heard.append(words)
        for catalogue in self._of.values():
            catalogue.hear(words)

    @property
    def last(self) -> Catalogue:
        """That of the experiment that was opened last; an empty one if none was."""
        return next(reversed(self._of.values()), None) or Catalogue()


def split(identity: str) -> tuple[str, str]:
    """Subject and name of a figure's ID."""
    at = identity.find(".", identity.rfind("=") + 1)
    return (identity[:at], identity[at + 1 :]) if at >= 0 else ("", identity)


def normal(sentence: str) -> str:
    """A sentence without what differs between two ways to print it."""
    return " ".join(sentence.lower().split()).rstrip(".;:")
