"""Sentences of a model held against the catalogue: grounded, with references printed, or its own words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asap.agents.grounding.catalogue import DIMENSIONS, FIELDS, NOW, ODDS, Catalogue, normal, split
from asap.agents.grounding.prose import (
    CITATION,
    REFERENCE,
    Number,
    blank,
    mentions,
    numbers,
    plain_digits,
    sentences,
    spare_names,
)
from asap.agents.grounding.words import PROVENANCES, carried, claims, unknown
from asap.answers.figure import CHANGE, Figure
from asap.core.errors import NotFoundError, UsageError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.core.units import Provenance
from asap.reports.phrases import written

OWN, HOLDS = "~", "°"
_MEANINGS = {OWN: "the model's own words, not from the engine", HOLDS: "the engine's figures in the model's own words"}
LONGEST = 1200
_SMALL = 3
_NOW_WORDS = re.compile(
    r"\b(?:now|today|current|currently|present|incumbent|baseline|status quo|runs)\b", re.IGNORECASE
)
_PRONOUN = re.compile(r"^\W*(?:it|its|this|that|they|their|which|these)\b", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[,;:](?!\d)|\b(?:and|against|versus|vs|than|while|whereas|but|instead of|compared|from|to)\b", re.IGNORECASE
)
_OVER = re.compile(r"(?:from|to)\b", re.IGNORECASE)
_NOUNS = {
    "device": "devices", "chip": "devices", "core": "devices", "node": "nodes", "host": "hosts", "slice": "slices",
    "sequence": "global_batch", "sample": "global_batch", "layer": "layers",
}  # fmt: skip


@dataclass(frozen=True)
class Sentence:
    """A sentence as it is shown: with values for references; and why it is not grounded, if so.

    Args:
        text: with the values.
        grounded: whether references carry all that it says.
        faults: figures and claims that do not hold, each with the reason.
        holds: whether its figures hold, and only other words may say more than they.
    """

    text: str
    grounded: bool
    faults: tuple[str, ...] = ()
    holds: bool = False


@dataclass(frozen=True)
class _Place:
    start: int
    end: int
    subject: str | None


def check(text: str, catalogue: Catalogue, about: str | None = None) -> list[Sentence]:
    """Every sentence of a text.

    Args:
        text: of a model.
        catalogue: what the engine answered.
        about: the plan that the text is about.
    """
    found, context = [], catalogue.subject(about) if about else None
    for line in sentences(plain_digits(text)):
        line = re.sub(rf"^(?:[{OWN}{HOLDS}]\s+)+", "", plain(redacted(line), LONGEST))  # no model sets the marks
        known = [one for mention in mentions(line) if (one := catalogue.subject(mention.name))]
        carries = about is not None or _PRONOUN.match(line) is not None
        found.append(_Reading(line, catalogue, context if carries else None).sentence())
        context = known[-1] if known else context
    return found


def rendered(found: Sequence[Sentence]) -> str:
    """The sentences in their order, the model's own marked."""
    return " ".join(one.text if one.grounded else f"{HOLDS if one.holds else OWN} {one.text}" for one in found)


def legend(text: str) -> str:
    """What the marks before sentences of a text mean; empty where there are none."""
    used = {word for word in text.split() if word in _MEANINGS}
    return "; ".join(f"{mark} {meaning}" for mark, meaning in _MEANINGS.items() if mark in used)


def faults(found: Sequence[Sentence]) -> list[str]:
    """What is wrong, each with its sentence, as it goes back to the model."""
    return [f"“{one.text}”: {'; '.join(one.faults)}" for one in found if one.faults]


class _Reading:
    def __init__(self, line: str, catalogue: Catalogue, context: str | None):
        self.line, self.catalogue, self.faults = line, catalogue, list[str]()
        self.mentions = [_Place(one.start, one.end, catalogue.subject(one.name)) for one in mentions(line)]
        self.mentions += [_Place(*one.span(), NOW) for one in _NOW_WORDS.finditer(blank(line, REFERENCE))]
        self.mentions.sort(key=lambda one: one.start)
        self.clauses = _clauses(line, [(one.start, one.end) for one in self.mentions])
        self.numbers, self.has_digits = numbers(line, catalogue.names)
        self.context, self.evidence = context, list[tuple[str, str, Figure]]()
        self.values: list[tuple[int, int, str]] = []
        self.is_stated = False  # whether a count or a setting of the run is said

    def sentence(self) -> Sentence:
        if normal(self.line) in self.catalogue.lines:
            return Sentence(self.line, grounded=True)
        for found in REFERENCE.finditer(self.line):
            self._reference(found)
        self._typed()
        cited = CITATION.findall(self.line)
        self.faults += [
            f"[{name}] was not returned by a search" for name in cited if name not in self.catalogue.sources
        ]
        is_plain = self._claims()
        text = self.line
        for start, end, value in sorted(self.values, reverse=True):
            text = f"{text[:start]}{value}{text[end:]}"
        if self.faults:
            return Sentence(text, grounded=False, faults=tuple(dict.fromkeys(self.faults)))
        grounded = is_plain and (bool(self.evidence or cited) or self.is_stated)
        return Sentence(text, grounded=grounded, holds=bool(self.evidence) and not grounded)

    def _reference(self, found: re.Match[str]) -> None:
        try:
            figure = self.catalogue.compute(found[1])
        except (NotFoundError, UsageError) as error:
            self.faults.append(plain(error, 200))
            return
        self._use(figure, found.start(), found.end(), found[1])

    def _use(self, figure: Figure, start: int, end: int, reference: str) -> None:
        terms = [one for one in reference.replace("(", " ").replace(")", " ").split() if "." in one]
        derived = len(terms) > 1 or " " in reference
        subject, name = ("", "derived") if derived else split(figure.id)
        subjects = {
            split(self.catalogue.look_up(one).id)[0] for one in terms if not one[0].isdigit() or "." in one[1:2]
        }
        here = self._subjects(start, compared=derived or figure.unit == CHANGE)
        others = {NOW, *self.catalogue.plans.values()} - here - ({NOW} if self._leaves(start) else set())
        if derived:
            if here and not (subjects - {NOW} <= here | {""} or here <= subjects):
                self.faults.append(f"{{{reference}}} is of another plan")
            subject = next(iter(here), "")
        elif here and subject in others:
            self.faults.append(f"{{{reference}}} is of {subject}, not of the plan beside it")
        if not derived and (other := self._mislabelled(figure, start)):
            self.faults.append(f"{{{reference}}} is not of “{other}”")
        self.evidence.append((subject, name, figure))
        of = "" if derived or subject in here or subject in {"", "run"} else f"{subject.replace(',', ' ')}; "
        self.values.append((start, end, f"{written(figure, brief=True)} [{of}{figure.provenance.value}]"))

    def _subjects(self, at: int, *, compared: bool = False) -> set[str]:
        """The plans that a place speaks of; empty: any. What is compared with now is of another plan."""
        clause = next(number for number, (_, end) in enumerate(self.clauses) if at < end)
        for start, end in [self.clauses[clause], *reversed(self.clauses[:clause])]:
            here = self._nearest([one for one in self.mentions if start <= one.start < end], at, compared)
            if here - {NOW} or (here and not compared):
                earlier = {one.subject for one in self.mentions if one.start < start and one.subject not in (None, NOW)}
                return here | earlier if here == {NOW} and end != self.clauses[clause][1] else here
        later = {one.subject or "?" for one in self.mentions}
        later = later - {NOW} if compared else later
        return later or ({self.context} if self.context else set())

    def _nearest(self, places: Sequence[_Place], at: int, compared: bool) -> set[str]:
        """Of the plans of a clause that before a figure, or the first; all of them where it compares."""
        named = [one for one in places if one.subject != NOW]
        if compared or len({one.subject for one in named}) < 2:
            return {one.subject or "?" for one in places}
        before = [one for one in named if one.start < at]
        return {(before[-1] if before else named[0]).subject or "?"}

    def _typed(self) -> None:
        """Takes each number that is written out for the figure that it reads like, or for a count of the run."""
        if self.has_digits:
            self.faults.append("digits that are no known name and no figure")
        for number in self.numbers:
            if (figure := self._figure_of(number)) is not None:
                subject, name = split(figure.id)
                self.evidence.append(("" if subject == "said" else subject, name, figure))
            elif not self._is_count(number):
                text = self.line[number.start : number.end]
                self.faults.append(f"“{text}” has no reference of a tool, or of another plan or quantity")

    def _figure_of(self, number: Number) -> Figure | None:
        found = [one for one in self.catalogue.all() if self._reads_like(number, one) and self._may_be_of(number, one)]
        here, clause = self._subjects(number.start), self._clause(number.start)
        labels = self.catalogue.labels
        found.sort(
            key=lambda one: (
                split(one.id)[0] not in here,
                not any(label in clause for label in labels.get(one.id, ())),
                one.unit != CHANGE,
            )
        )
        return next(iter(found), None)

    def _reads_like(self, number: Number, figure: Figure) -> bool:
        """Whether a number is a figure's value, or an end of its interval where both ends are said."""
        if DIMENSIONS.get(figure.unit, figure.unit) != number.dimension:
            return False
        ends = [end for end in (figure.low, figure.high) if end is not None]
        both = all(any(_is_close(one, end) for one in self.numbers) for end in ends)
        return _is_close(number, figure.value) or (both and any(_is_close(number, end) for end in ends))

    def _may_be_of(self, number: Number, figure: Figure) -> bool:
        subject = split(figure.id)[0]
        here = self._subjects(number.start, compared=figure.unit == CHANGE)
        if subject in self.catalogue.plans.values() or subject == NOW:
            fitting = subject in here or (subject == NOW and (not here or self._leaves(number.start)))
        else:
            fitting = subject != "said" or figure.provenance is Provenance.STATED or not here - {NOW}
        return fitting and not self._mislabelled(figure, number.start)

    def _leaves(self, at: int) -> bool:
        """Whether a value is that from which another is reached, of no plan that is named beside it."""
        start, end = next(one for one in self.clauses if at < one[1])
        named = any(start <= one.start < end for one in self.mentions)
        return not named and self.line[start:end].lower().startswith("from")

    def _clause(self, at: int) -> str:
        """What a place speaks of: its clause, and that before it where one value goes over into another."""
        number = next(number for number, (_, end) in enumerate(self.clauses) if at < end)
        start, end = self.clauses[number]
        while number and _OVER.match(self.line[start:end]):
            number, start = number - 1, self.clauses[number - 1][0]
        return self.line[start:end].lower()

    def _mislabelled(self, figure: Figure, at: int) -> str | None:
        """What the clause speaks of instead of a figure that has a name of its own."""
        clause, unit, name = self._clause(at), DIMENSIONS.get(figure.unit, figure.unit), split(figure.id)[1]
        labels, field = self.catalogue.labels.get(figure.id, set()), FIELDS.get(name, ("", frozenset()))
        own = labels | field[1]
        others = {label for labels in self.catalogue.labels.values() for label in labels}
        others |= {word for of, words in FIELDS.values() if of == unit or words is not ODDS for word in words}
        other = next((one for one in sorted(others - own) if one in clause and one not in name.replace("_", " ")), None)
        if not own or any(label in clause for label in own):
            return None if own else other
        alone = not labels and [of for of, _ in FIELDS.values()].count(unit) == 1
        return other if alone else f"anything but {min(own)}"

    def _is_count(self, number: Number) -> bool:
        if number.dimension not in {"", "count"} or not float(number.value).is_integer():
            return False
        if abs(number.value) <= _SMALL:
            return True
        fields, noun = self.catalogue.counts, _NOUNS.get(number.noun)
        known = [fields.get(noun, set())] if noun is not None else fields.values()
        found = any(number.value in values for values in known)
        self.is_stated = self.is_stated or found
        return found

    def _claims(self) -> bool:
        """Holds each claim against the references; whether no other word can claim anything."""
        words = blank(blank(self.line, REFERENCE), CITATION)
        spared = [(one.start, one.end) for one in (*self.numbers, *mentions(self.line))]
        spared += [
            found.span() for label in self._labels() for found in re.finditer(rf"{re.escape(label)}\w*", words.lower())
        ]
        for start, end in spared:
            words = words[:start] + " " * (end - start) + words[end:]
        words = spare_names(words, self.catalogue.names)
        made = claims(words)
        kinds = {one.claim.kind for one in made}
        for one in made:
            kind, here = one.claim.kind, self._subjects(one.at) - {"?"}
            subject = next(iter(here - {NOW}), None) if len(here - {NOW}) == 1 else None
            if (kind == "past" and kinds & PROVENANCES) or (kind == "enabled" and self._is_set()):
                self.is_stated = self.is_stated or kind == "enabled"
                continue
            if kind in PROVENANCES | {"past"} and here == {NOW}:
                subject = NOW
            of_odds = any(stem in self.line[: one.at].lower() for stem in ODDS)
            if not carried(one.claim, subject, self.evidence, self.catalogue.fits, of_odds=of_odds):
                self.faults.append(f"“{one.word(self.line)}” needs {one.claim.needs}")
        return not unknown(words, made)

    def _labels(self) -> list[str]:
        """What the figures of the sentence are called."""
        own = [self.catalogue.labels.get(figure.id, set()) for _, _, figure in self.evidence]
        fields = [FIELDS[name][1] for _, name, _ in self.evidence if name in FIELDS]
        return sorted({label for labels in (*own, *fields) for label in labels}, key=len, reverse=True)

    def _is_set(self) -> bool:
        said = [word.strip(".,;:`'\"()").lower() for word in self.line.split() if "=" in word]
        return bool(said) and all(one in self.catalogue.settings for one in said)


def _clauses(line: str, spared: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Beginning and end of each clause; plans and references are not cut."""
    kept = [*spared, *(found.span() for found in REFERENCE.finditer(line))]
    cuts = [one.start() for one in _CLAUSE.finditer(line) if not any(a <= one.start() < b for a, b in kept)]
    ends = [*cuts, len(line) + 1]
    return list(zip([0, *cuts], ends, strict=True))


def _is_close(number: Number, value: float) -> bool:
    return abs(abs(number.value) - abs(value)) <= number.half_digit * 1.0001
