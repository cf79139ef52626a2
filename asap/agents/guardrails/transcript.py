"""What the tools of a session answered, as the words of a model are checked against it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from asap.agents.guardrails.faults import Setting
from asap.agents.guardrails.grounding import FOREIGN, GroundedValue, known_values, quoted_values
from asap.agents.guardrails.prose.figures import named
from asap.agents.guardrails.prose.subjects import PLAN, PlanTerms, terms
from asap.reports.answers.compact import unrolled

_RANKED = re.compile(rf"^(\d)\. ({PLAN.pattern})", re.MULTILINE)
_LIBRARY = ("notes", "precedents")
"""Tools whose answers are quoted only where they are cited; their rows stand under the name of the tool."""


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
        for item in answer.get(tool, ()):
            texts = " ".join(str(item.get(name, "")) for name in ("title", "text", "summary"))
            facts = {name: item[name] for name in ("effect", "similarity", "confidence") if item.get(name) is not None}
            self.sources[item["id"]] = quoted_values(texts, item["id"]) + known_values(facts, item["id"])

    def _take_plans(self, tool: str, answer: Mapping[str, Any]) -> None:
        """The incumbent and the numbers of the proposals, where an answer of the engine has them."""
        now = answer.get("now")
        current = answer if tool == "run" else now if isinstance(now, Mapping) else {}
        if isinstance(plan := current.get("plan"), str):
            self.incumbent = terms(plan)
        if tool == "engine":
            ranked = _RANKED.findall(str(answer.get("statement", "")))
            self.ranks |= {int(number): terms(plan) for number, plan in ranked}
        proposals = answer.get("proposals") if tool == "analyze_experiment" else ()
        self.ranks |= {one["rank"]: terms(str(one["plan"])) for one in proposals or ()}


def _names(answer: Any) -> set[str]:
    """All words with digits that are somewhere in an answer."""
    if isinstance(answer, str):
        return named(answer)
    items = answer.values() if isinstance(answer, Mapping) else answer if isinstance(answer, list | tuple) else ()
    return {name for item in items for name in _names(item)}


def _foreign(answer: Any, inside: bool = False) -> Iterator[str]:
    """All text in an answer that comes from files."""
    if isinstance(answer, str) and inside:
        yield answer
    elif isinstance(answer, Mapping):
        for key, item in answer.items():
            yield from _foreign(item, inside or key in FOREIGN)
    elif isinstance(answer, list | tuple):
        for item in answer:
            yield from _foreign(item, inside)
