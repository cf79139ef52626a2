"""The evaluator agent: a language model that proposes what ``asap optimize`` tries next.

It sees what the built-in proposer sees (tries, feedback, candidates), with precedents and notes; for mapping programs
also the grammar. It says what and why; every figure stays the engine's, a proposal that cannot be used goes back to it
with its feedback, and the loop alone decides whether anything is spent. In a quarter of the budget it may try what the
engine expects nothing of.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import BaseModel, Field, ValidationError

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.grounding.verdict import check, rendered
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.models import language_model
from asap.agents.settings import Settings
from asap.agents.tools.toolbox import Answer, harmless
from asap.agents.workflow.adk_run import conversation, metered, running_adk
from asap.agents.workflow.app import agent, app
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.answers.figure import bare
from asap.answers.inquiry import Inquiry
from asap.answers.library_queries import NotesAnswer, Precedents, PrecedentsAnswer, found_notes
from asap.core.text import fenced, plain, plain_lines
from asap.core.units import Provenance
from asap.optimize.loop import Engine, NotUsableError
from asap.optimize.outcome import Suggestion, Try
from asap.optimize.results import best_of
from asap.optimize.stopping import WORTH_KNOWING
from asap.reports.answers.compact import to_compact
from asap.sharding_memory import Worklog
from asap.study.study import Study

EVALUATOR = "evaluator"
ATTEMPTS = 3
CANDIDATES = 10
RECORDS, NOTES = 4, 2
MOST_FEEDBACK = 10
"""Things wrong with one program that go back at once."""
_LONGEST_REASON = 300
OVERRULED = "against the engine: "
_OVERRULES, _UNKNOWN_BUDGET = 1 / 4, 8
"""Share of the budget in which the model may overrule the engine, and tries of a budget of time."""


class Choice(BaseModel):
    """What the model answers."""

    configuration: str = Field(default="", max_length=4000)
    faster: bool = True
    reason: str = Field(default="", max_length=4000)


@dataclass
class AgentProposer:
    """A proposer that asks a language model.

    Args:
        engine: the built-in proposer: its candidates, its expectations, and what is proposed where the model fails.
        settings: of the model.
        worklog: of the session.
        evaluations: budget of the session; ``None`` where it is a time.
        study: the run whose plans are tried; ``None`` for mapping programs.
    """

    engine: Engine
    settings: Settings
    worklog: Worklog
    evaluations: int | None = None
    study: Study | None = None
    _expected_faster: dict[int, bool] = field(default_factory=dict)

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """What the model proposes; the built-in proposer's choice where it measures again what noise leaves open, and
        after three that cannot be used.

        Raises:
            ServiceError: the model failed, or reached a limit.
        """
        engine = self.engine.propose(tries)
        tried = {each.configuration for each in tries}
        if engine is None or not tries or engine.configuration in tried:
            return engine
        facts = harmless(self._facts(tries), plain_lines)  # a program has one decision a line
        meter = UsageMeter(self.settings.model, self.settings)
        with running_adk(), metered(self.settings.model, self.worklog, meter):
            found = asyncio.run(self._converse(tries, facts, meter, engine))
        if found is None:
            why = f"{engine.why} (the language model proposed nothing that can be tried)"
            return engine.model_copy(update={"why": why})
        return found

    async def _converse(
        self, tries: Sequence[Try], facts: Answer, meter: UsageMeter, engine: Suggestion
    ) -> Suggestion | None:
        model = language_model(self.settings, meter)
        proposer = agent(EVALUATOR, model, self.settings, "Proposes the next try.", (), Choice)
        built = app("optimize", proposer, [MemoryPlugin(self.worklog)], self.settings)
        notes = found_notes(_subject(tries), NOTES)
        heard = facts | harmless(to_compact(notes))
        if self._records is not None:
            heard |= harmless(to_compact(self._records))
        message = fenced(json.dumps(heard, ensure_ascii=False), "optimization")
        catalogue = self._catalogue(tries, notes)
        async with conversation(built, self.worklog.session) as ask:
            for _ in range(ATTEMPTS):
                try:
                    return self._suggestion(await ask(message), tries, catalogue, engine)
                except NotUsableError as wrong:
                    said = [each.model_dump(mode="json", exclude_none=True) for each in wrong.feedback[:MOST_FEEDBACK]]
                    complaint = {"complaint": plain(wrong, 600)} | (harmless({"feedback": said}) if said else {})
                    message = json.dumps(complaint, ensure_ascii=False)
        return None

    def _suggestion(self, answer: str, tries: Sequence[Try], catalogue: Catalogue, engine: Suggestion) -> Suggestion:
        try:
            choice = Choice.model_validate_json(answer)
        except ValidationError as error:
            raise NotUsableError("the answer is not of the schema: configuration, faster, reason") from error
        if not choice.configuration.strip():
            other = plain(engine.configuration, _LONGEST_REASON)
            why = f"The language model ended the search; the engine would have tried {other} ({plain(engine.why)})."
            return Suggestion(configuration="", why=why)
        configuration = self.engine.read(choice.configuration)
        expected = self.engine.expected(configuration, tries)
        if any(each.configuration == configuration for each in tries if not _was_lost(each)):
            raise NotUsableError("this configuration was tried")
        reason = rendered(check(choice.reason, catalogue, configuration)) or "proposed by the language model"
        overrules = _expects_nothing(expected, tries)
        if overrules:
            if not choice.faster or not self._overrules_left(tries):
                raise NotUsableError(
                    "the engine expects this configuration to save nothing that is worth an evaluation"
                )
            reason, expected = OVERRULED + reason, expected.model_copy(update={"saving": None})
        self._expected_faster[len(tries) + 1] = choice.faster
        other = engine.configuration if engine.configuration != configuration else None
        said = {"why": plain(reason, _LONGEST_REASON), "instead_of": other, "overrules": overrules}
        return expected.model_copy(update={"configuration": configuration, **said})

    def _overrules_left(self, tries: Sequence[Try]) -> int:
        """How often the model may still try what the engine expects nothing of."""
        used = sum(each.overrules for each in tries)
        return max(int(_OVERRULES * (self.evaluations or _UNKNOWN_BUDGET)) - used, 0)

    def _facts(self, tries: Sequence[Try]) -> Answer:
        best = best_of(tries)
        left = None if self.evaluations is None else self.evaluations - len(tries)
        candidates = [each.model_dump(mode="json", exclude_none=True) for each in self.engine.best(tries, CANDIDATES)]
        return {
            **({"language": self.engine.language} if self.engine.language else {}),
            "tries": [each.model_dump(mode="json", exclude_none=True) for each in tries],
            "best": {"configuration": best.configuration, "step_time_s": best.step_time_s} if best else None,
            "candidates": candidates,
            "left": left,
            "overrules_left": self._overrules_left(tries),
            "your_last": self._verdict(tries),
        }

    @cached_property
    def _records(self) -> PrecedentsAnswer | None:
        """Precedents of the run, which no try changes."""
        return Precedents(limit=RECORDS).answer(Inquiry(self.study)) if self.study else None

    def _catalogue(self, tries: Sequence[Try], notes: NotesAnswer) -> Catalogue:
        """What the model may refer to: plans that were tried or may be by themselves, programs by their number,
        records and notes."""
        found = Catalogue()
        if self._records is not None:
            found.record("precedents", self._records)
        found.record("notes", notes)
        for number, each in enumerate((*tries, *self.engine.best(tries, CANDIDATES)), 1):
            outcome, expected = getattr(each, "outcome", None), each.predicted
            subject = each.configuration.replace(" ", ",") if self.study else f"program{number}"
            if self.study:
                found.plans[frozenset(subject.lower().split(","))] = subject
            timed = (outcome.step_time_s, outcome.provenance) if outcome else (None, Provenance.MODELLED)
            for name, value, unit, kind in (
                ("step_time", expected.step_time_s, "s", Provenance.MODELLED),
                ("hbm", expected.hbm_bytes, "bytes", Provenance.MODELLED),
                ("measured_step_time", timed[0], "s", timed[1]),
            ):
                if (figure := bare(subject, name, value, unit, "this session", kind)) is not None:
                    found.figures[figure.id] = figure
        return found

    def _verdict(self, tries: Sequence[Try]) -> str | None:
        """Whether the last expectation came true."""
        last, expected = tries[-1], self._expected_faster.get(len(tries))
        if expected is None or last.outcome is None:
            return None
        before, now = best_of(tries[:-1]), last.outcome.step_time_s
        was = now is not None and (before is None or now < before.step_time_s)
        return f"you expected it to be {_words(expected)}; it was {_words(was) if now else 'not timed'}"


def _expects_nothing(expected: Suggestion, tries: Sequence[Try]) -> bool:
    """Of what the built-in proposer leaves out, the model of the step is all that is known."""
    if expected.saving is not None:
        return expected.saving <= WORTH_KNOWING
    best, low = best_of(tries), expected.predicted.low_s
    return best is not None and (low is None or low > best.step_time_s)


def _subject(tries: Sequence[Try]) -> str:
    """What notes are looked up for: what the last try showed, or how its plan is sharded."""
    last = tries[-1]
    said = [f"{each.explanation} {each.suggestion}" for each in (last.outcome.feedback if last.outcome else ())]
    return plain("; ".join(said) or f"step time of {' '.join(last.configuration.split())}", 400)


def _was_lost(each: Try) -> bool:
    return each.outcome is not None and each.outcome.status == "lost"


def _words(faster: bool) -> str:
    return "faster than the best" if faster else "not faster than the best"
