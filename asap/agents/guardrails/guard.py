"""Checks what a language model wrote: figures, directions and citations resolve, and no instruction is repeated.

Pure functions over the words and the answers of the tools in the session.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from asap.agents.guardrails.faults import Fault, Setting, find_faults
from asap.agents.guardrails.figures import CITATION, figures, named, normal
from asap.agents.guardrails.grounding import GroundedValue, known_values, quoted_values, resolve
from asap.agents.guardrails.subjects import PLAN, PlanTerms, terms
from asap.agents.tools.tables import unrolled
from asap.core.secrets import redacted
from asap.core.text import plain

LONGEST = 1200
REMOVED = "[removed]"
REPEATED_WORDS = 8
"""This many words of an agent's instructions in a row count as repeating them."""

_RANKED = re.compile(rf"^(\d)\. ({PLAN.pattern})", re.MULTILINE)
_FOREIGN = {"name", "category", "fact", "description", "warnings", "title", "text", "summary", "alike", "shape"}
"""Fields whose words come from files that others wrote."""

_LIBRARY = {"search_knowledge": "notes", "search_history": "records"}


class Complaint(BaseModel):
    """What is wrong with a paragraph, why, and what would be right."""

    model_config = ConfigDict(frozen=True)

    paragraph: str
    what: str
    why: str
    right: str


@dataclass
class Transcript:
    """The answers of the tools in a session.

    Args:
        values: of the engine.
        sources: values in notes and records, by ID.
        names: words with digits.
        foreign_plans: plans that text from files names, as sets of `axis=degree`.
        incumbent: the plan that runs now, whose figures are those of the run.
        ranks: the plans of the proposals by number.
    """

    values: list[GroundedValue] = field(default_factory=list)
    sources: dict[str, list[GroundedValue]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    foreign_plans: set[PlanTerms] = field(default_factory=set)
    incumbent: PlanTerms | None = None
    ranks: dict[int, PlanTerms] = field(default_factory=dict)

    def named_in_files(self, plan: str) -> bool:
        """Whether text from files names a plan; such text is not trusted."""
        return terms(plan) in self.foreign_plans

    def setting(self, about: str | None) -> Setting:
        """What a paragraph is about, and what its words refer to."""
        plan = terms(about) if about else None
        known = any(one.plan == plan for one in self.values)
        return Setting(plan if known else None, self.incumbent, dict(self.ranks))

    def record(self, tool: str, answer: Any) -> None:
        """Remember the answer of a tool; what notes and records say counts only where they are cited."""
        if not isinstance(answer, Mapping) or "error" in answer:
            return
        answer = unrolled(answer)
        self.names |= _names(answer)
        self.foreign_plans |= {terms(run[0]) for text in _foreign(answer) for run in PLAN.finditer(text)}
        self._take_plans(tool, answer)
        if tool not in _LIBRARY:
            self.values += known_values(answer, tool)
            return
        for item in answer.get(_LIBRARY[tool], ()):
            texts = " ".join(str(item.get(name, "")) for name in ("title", "text", "summary"))
            facts = {name: item[name] for name in ("speedup", "similarity", "confidence") if item.get(name) is not None}
            self.sources[item["id"]] = quoted_values(texts, item["id"]) + known_values(facts, item["id"])

    def _take_plans(self, tool: str, answer: Mapping[str, Any]) -> None:
        """The incumbent and the numbers of the proposals, where an answer of the engine has them."""
        incumbent = answer.get("incumbent")
        current = answer if tool == "get_experiment" else incumbent if isinstance(incumbent, Mapping) else {}
        if isinstance(plan := current.get("plan"), str):
            self.incumbent = terms(plan)
        if tool == "engine":
            ranked = _RANKED.findall(str(answer.get("statement", "")))
            self.ranks |= {int(number): terms(plan) for number, plan in ranked}
        proposals = answer.get("proposals") if tool == "analyze_experiment" else ()
        self.ranks |= {one["rank"]: terms(str(one["plan"])) for one in proposals or ()}


def complaints(
    paragraph: str, prose: str, transcript: Transcript, instructions: Sequence[str] = (), about: str | None = None
) -> list[Complaint]:
    """Everything that is wrong with a paragraph.

    Args:
        paragraph: what to call it.
        prose: its words.
        transcript: answers of the tools.
        instructions: texts that must not be repeated.
        about: the plan that it is about.
    """
    found = [_bad_citation(paragraph, name) for name in CITATION.findall(prose) if name not in transcript.sources]
    found += [
        Complaint(paragraph=paragraph, what=fault.text, why=fault.why, right=fault.right)
        for fault in _faults(prose, transcript, about)
    ]
    if repeats_instructions(prose, instructions):
        why, right = "it repeats the instructions of an agent", "write only about the run"
        found.append(Complaint(paragraph=paragraph, what="the paragraph", why=why, right=right))
    return found


def mentions_any(prose: str, transcript: Transcript, known: Sequence[GroundedValue]) -> bool:
    """Whether the words name at least one of these values."""
    return any(resolve(figure, known) is not None for figure in figures(prose, transcript.names))


def remove_unverified(
    prose: str, transcript: Transcript, instructions: Sequence[str] = (), about: str | None = None
) -> str:
    """The words without what does not resolve; a paragraph that repeats instructions is dropped."""
    if repeats_instructions(prose, instructions):
        return ""
    prose = CITATION.sub(lambda found: found.group() if found.group(1) in transcript.sources else REMOVED, prose)
    while wrong := _faults(prose, transcript, about):
        for fault in reversed(wrong):
            prose = prose[: fault.start] + REMOVED + prose[fault.end :]
    return prose


def repeats_instructions(prose: str, instructions: Sequence[str]) -> bool:
    """Whether eight words in a row stand in an agent's instructions as well."""
    words = _words(prose)
    runs = {tuple(words[at : at + REPEATED_WORDS]) for at in range(len(words) - REPEATED_WORDS + 1)}
    return any(runs & _runs(text) for text in instructions)


def sanitize(prose: str) -> str:
    """One line with plain digits, without control characters and secrets, truncated."""
    return plain(redacted(normal(prose)), LONGEST)


def _faults(prose: str, transcript: Transcript, about: str | None) -> list[Fault]:
    """Every figure and every direction that does not resolve, in order."""
    return find_faults(prose, transcript.names, _usable(prose, transcript), transcript.setting(about))


def _names(answer: Any) -> set[str]:
    """All words with digits that are somewhere in an answer."""
    if isinstance(answer, str):
        return named(answer)
    items = answer.values() if isinstance(answer, Mapping) else answer if isinstance(answer, list | tuple) else ()
    return {name for item in items for name in _names(item)}


def _usable(prose: str, transcript: Transcript) -> list[GroundedValue]:
    cited = (transcript.sources.get(name, []) for name in CITATION.findall(prose))
    return [*transcript.values, *(known for values in cited for known in values)]


def _bad_citation(paragraph: str, name: str) -> Complaint:
    why, right = "no tool of this session returned a note or a record of that ID", "cite an ID that a search returned"
    return Complaint(paragraph=paragraph, what=f"[{name}]", why=why, right=right)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _words(text)
    return {tuple(words[at : at + REPEATED_WORDS]) for at in range(len(words) - REPEATED_WORDS + 1)}


def _foreign(answer: Any, inside: bool = False) -> Iterator[str]:
    """All text in an answer that comes from files."""
    if isinstance(answer, str) and inside:
        yield answer
    elif isinstance(answer, Mapping):
        for key, item in answer.items():
            yield from _foreign(item, inside or key in _FOREIGN)
    elif isinstance(answer, list | tuple):
        for item in answer:
            yield from _foreign(item, inside)
