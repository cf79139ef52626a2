"""Queries on what others have learned: precedents, ideas to try, notes, the meaning of a word."""

import math
import tomllib
from collections import Counter
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from asap.answers.figure import CHANGE, Answer, Figure, Lines, Part, Query, bare, figure
from asap.answers.inquiry import Inquiry
from asap.core.errors import NotFoundError
from asap.core.units import Provenance
from asap.history import HistoryHit
from asap.history.record import HistoryRecord
from asap.plans.axes import AXES, MEANINGS

Words = Annotated[str, Field(min_length=1, max_length=1000)]
Limit = Annotated[int, Field(ge=1, le=10)]


class PrecedentRow(Part):
    """A past optimization."""

    id: str
    title: str
    outcome: str
    effect: Figure | None = Field(description="what became of the time, as it was measured")
    before: str | None
    after: str | None
    similarity: float = Field(description="of its run to this one, 0 to 1")
    why: str = Field(description="in what its run is similar")
    source: str | None
    summary: str


class PrecedentsAnswer(Answer):
    """Past optimizations, successful or not."""

    precedents: tuple[PrecedentRow, ...]


class Precedents(Query):
    """Search past optimizations, successful or not: of runs like this one, or by words such as: context parallelism out
    of memory on v5e."""

    words: Annotated[str, Field(max_length=1000)] | None = None
    limit: Limit = 4

    def answer(self, inquiry: Inquiry) -> PrecedentsAnswer:
        """The most similar first."""
        from asap.history import HistoryQuery, parse_query, search_history
        from asap.proposals.selection.precedents import similar_runs

        if self.words:
            found = search_history(parse_query(HistoryQuery(text=self.words)), self.limit)
        else:
            found = similar_runs(inquiry.study, self.limit)
        return PrecedentsAnswer(precedents=tuple(map(_precedent, found)))


class IdeaRow(Part):
    """A change beside every plan."""

    idea: str
    change: str
    elsewhere: Figure | None = Field(default=None, description="change of the step time that runs elsewhere measured")
    at_most: Figure | None = Field(default=None, description="share of this step that it touches")
    runs: int
    here: str = Field(description="whether this run has something that it touches")
    records: tuple[str, ...]


class IdeasAnswer(Answer):
    """Untested changes, and how one is tried."""

    ideas: tuple[IdeaRow, ...]
    line: Lines = Field(description="runs the launcher's command with a change and without; nothing was run")


class Ideas(Query):
    """List untested changes beside every plan (kernels, flags, loss, overlap), or those that words name, with what they
    brought elsewhere and the command that tries one. Nothing is run."""

    words: Annotated[str, Field(max_length=400)] | None = Field(
        default=None, description="such as asynchronous TP; or a change as it is typed: key=value"
    )

    def answer(self, inquiry: Inquiry) -> IdeasAnswer:
        """The most promising first; of what words name, whatever is on record."""
        from asap.proposals.ideas import against, engine_ideas
        from asap.proposals.typed_change import typed_or_none

        study, typed, records = inquiry.study, typed_or_none(self.words or ""), families()
        named = named_families(self.words) if self.words else []
        if self.words and not named and typed is None:
            raise NotFoundError("no run on record tried it", where=self.words, hint="`ideas` lists what may help here")
        found = engine_ideas(study, inquiry.incumbent, named=named) if named or not self.words else ()
        rows = [
            IdeaRow(
                idea=one.title, change=one.change, runs=one.runs, records=one.precedents,
                elsewhere=figure(one.title, "elsewhere", one.effect), at_most=figure(one.title, "at_most", one.bound),
                here=against(study, one.title) or "can be tried",
            )
            for one in found
        ]  # fmt: skip
        rows += [
            IdeaRow(
                idea=name, change=of[0].other_changes[0].partition(": ")[2], runs=len(of), here=_ELSEWHERE,
                records=tuple(one.id for one in of[:3]),
            )
            for name, of in records.items() if name in named and name not in {one.title for one in found}
        ]  # fmt: skip
        run = f"asap optimize {inquiry.id} --evaluate run --command './train.sh {{overrides}}' --idea"
        changes = [typed] if typed else [one.change for one in found if typed_or_none(one.change)]
        return IdeasAnswer(ideas=tuple(rows), line=tuple(f"{run} '{one}'" for one in changes))


_ELSEWHERE = "what it brought was measured on other kinds of chips, or with another change that excludes it"
_ALIKE = 0.35
"""Share of a family's terms, by how rare they are, that words have to name."""


@cache
def families() -> dict[str, list[HistoryRecord]]:
    """Runs on record that tried a change beside the plan, by the family of the change."""
    from asap.history.families import family_of
    from asap.history.files import load_records

    found: dict[str, list[HistoryRecord]] = {}
    for one in load_records():
        if one.kind is not None and one.other_changes:
            found.setdefault(family_of(one), []).append(one)
    return found


def named_families(words: str) -> list[str]:
    """Families of changes whose names have all of some words, or share the most with them, by stems and concepts."""
    from asap.knowledge.index.terms import CONCEPT, concepts
    from asap.knowledge.index.terms import terms as terms_of

    said, own = set(terms_of(words)), [set(terms_of(one)) for one in families()]
    meanings = [{word, *concepts([word])} for word in said if not word.startswith(CONCEPT)]
    rarity = {term: math.log(1 + len(own) / count) for term, count in Counter(t for one in own for t in one).items()}
    shares = [sum(rarity[t] for t in one & said) / sum(rarity[t] for t in one) if one else 0.0 for one in own]
    least = max(_ALIKE, 0.8 * max(shares, default=0.0))
    rows = zip(families(), own, shares, strict=True)
    return [name for name, one, share in rows if (meanings and all(each & one for each in meanings)) or share >= least]


class NoteRow(Part):
    """A note of the knowledge base."""

    id: str
    title: str
    text: str
    source: str | None


class NotesAnswer(Answer):
    """Notes on a subject."""

    notes: tuple[NoteRow, ...]


class Notes(Query):
    """Search the notes on sharding and performance for the principle behind a change, by words such as: tensor
    parallelism all-reduce critical path."""

    words: Words
    limit: Limit = 3

    def answer(self, inquiry: Inquiry) -> NotesAnswer:
        """The most relevant first."""
        return found_notes(self.words, self.limit)


def found_notes(words: str, limit: int) -> NotesAnswer:
    """The notes that say most about some words, the most relevant first."""
    from asap.knowledge import search_knowledge

    rows = (
        NoteRow(id=hit.note.id, title=hit.note.title, text=hit.note.body, source=hit.note.citation.url)
        for hit in search_knowledge(words, limit)
    )
    return NotesAnswer(notes=tuple(rows))


class DefineAnswer(Answer):
    """The meaning of a word."""

    term: str
    means: str


class Define(Query):
    """Say what a word of the reports or of the trade means, such as: P(faster), exposed, MFU, FSDP."""

    term: Annotated[str, Field(min_length=1, max_length=80)]

    def answer(self, inquiry: Inquiry) -> DefineAnswer:
        """From the table of terms."""
        known, word = terms(), self.term.strip().lower().rstrip("?")
        word = MEANINGS[word].lower() if word in AXES else word
        name = word if word in known else word.removesuffix("s")
        if name not in known:
            close = get_close_matches(word, known, n=3, cutoff=0.6)
            hint = f"did you mean {', '.join(close)}?" if close else "`notes` searches the knowledge base"
            raise NotFoundError("is not in the table of terms", where=self.term, hint=hint)
        return DefineAnswer(term=name, means=known[name])


@cache
def terms() -> dict[str, str]:
    """Each name with what it means."""
    table = tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))
    return {name.lower(): each["means"] for each in table["term"] for name in each["names"]}


def _precedent(hit: HistoryHit) -> PrecedentRow:
    record = hit.record
    change = 1 / record.speedup - 1 if record.speedup else None
    return PrecedentRow(
        id=record.id, title=record.title, outcome=record.outcome.value.replace("_", " "), summary=record.summary,
        effect=bare(record.id, "effect", change, CHANGE, record.source.text, Provenance.PRECEDENT),
        before=str(record.before) if record.before else None, after=str(record.after) if record.after else None,
        similarity=hit.similarity, why="; ".join(hit.why), source=record.source.url,
    )  # fmt: skip
