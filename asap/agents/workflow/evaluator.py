"""The evaluator agent: a language model that proposes what ``asap optimize`` tries next.

It sees what the built-in proposer sees (tries, feedback, candidates), with precedents and notes. It says what and why;
every figure stays the engine's, a proposal that cannot be used goes back to it, and the loop alone decides whether
anything is spent. In a quarter of the budget it may try what the engine expects nothing of.
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
from asap.agents.llm.usage import usage_entry
from asap.agents.settings import Settings
from asap.agents.tools.toolbox import Answer, harmless
from asap.agents.workflow.adk_run import as_service_error, conversation, running_adk
from asap.agents.workflow.app import agent, app
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.answers.figure import bare
from asap.answers.inquiry import Inquiry
from asap.answers.library_queries import Notes, NotesAnswer, Precedents, PrecedentsAnswer
from asap.core.errors import PlanError
from asap.core.text import fenced, plain
from asap.core.units import Provenance
from asap.optimize.outcome import Expectation, Suggestion, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.optimize.results import best_of
from asap.optimize.stopping import WORTH_KNOWING
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.proposals.launch import why_not_launched
from asap.reports.answers.compact import to_compact
from asap.sharding_memory import Kind, Worklog
from asap.study.study import Study, read_plan

EVALUATOR = "evaluator"
ATTEMPTS = 3
CANDIDATES = 10
RECORDS, NOTES = 4, 2
_LONGEST_REASON = 300
OVERRULED = "against the engine: "
_OVERRULES, _UNKNOWN_BUDGET = 1 / 4, 8
"""Share of the budget in which the model may overrule the engine, and tries of a budget of time."""


class Choice(BaseModel):
    """What the model answers."""

    configuration: str = Field(default="", max_length=400)
    faster: bool = True
    reason: str = Field(default="", max_length=4000)


class UnusableError(Exception):
    """A choice that cannot be tried; the message goes back to the model."""


@dataclass
class AgentProposer:
    """A proposer that asks a language model.

    Args:
        study: the run.
        guided: the built-in proposer: its candidates, its expectations, and what is proposed where the model fails.
        settings: of the model.
        worklog: of the session.
        evaluations: budget of the session; ``None`` where it is a time.
    """

    study: Study
    guided: ModelGuided
    settings: Settings
    worklog: Worklog
    evaluations: int | None = None
    _expected_faster: dict[int, bool] = field(default_factory=dict)

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """What the model proposes; the built-in proposer's choice after three that cannot be used.

        Raises:
            ServiceError: the model failed, or reached a limit.
        """
        engine = self.guided.propose(tries)
        if engine is None or not tries:
            return engine
        facts = harmless(self._facts(tries))
        meter = UsageMeter(self.settings.model, self.settings)
        with running_adk(), as_service_error(self.settings.model):
            try:
                found = asyncio.run(self._converse(tries, facts, meter))
            finally:
                self.worklog.append(Kind.NOTE, usage_entry(meter.usage))
        if found is None:
            why = f"{engine.why} (the language model proposed nothing that can be tried)"
            return engine.model_copy(update={"why": why})
        return found if found.configuration else None

    async def _converse(self, tries: Sequence[Try], facts: Answer, meter: UsageMeter) -> Suggestion | None:
        model = language_model(self.settings, meter)
        proposer = agent(EVALUATOR, model, self.settings, "Proposes the next try.", (), Choice)
        built = app("optimize", proposer, [MemoryPlugin(self.worklog)], self.settings)
        notes = Notes(words=_subject(tries), limit=NOTES).answer(Inquiry(self.study))
        heard = facts | harmless(to_compact(self._records)) | harmless(to_compact(notes))
        message = fenced(json.dumps(heard, ensure_ascii=False), "optimization")
        catalogue = self._catalogue(tries, notes)
        async with conversation(built, self.worklog.session) as ask:
            for _ in range(ATTEMPTS):
                try:
                    return self._suggestion(await ask(message), tries, catalogue)
                except UnusableError as wrong:
                    message = json.dumps({"complaint": plain(wrong, 600)}, ensure_ascii=False)
        return None

    def _suggestion(self, answer: str, tries: Sequence[Try], catalogue: Catalogue) -> Suggestion:
        try:
            choice = Choice.model_validate_json(answer)
        except ValidationError as error:
            raise UnusableError("the answer is not of the schema: configuration, faster, reason") from error
        if not choice.configuration.strip():
            return Suggestion(configuration="", why="")
        try:
            plan = read_plan(self.study, choice.configuration)
        except PlanError as error:
            raise UnusableError(f"the configuration cannot be used: {error}") from error
        if refused := why_not_launched(self.study, plan):
            raise UnusableError(f"the configuration cannot be launched: {refused}")
        configuration = str(plan)
        expected = self.guided.expected(configuration, tries) or self._predicted(plan)
        if any(each.configuration == configuration for each in tries if not _may_be_repeated(each)):
            raise UnusableError("this configuration was tried")
        reason = rendered(check(choice.reason, catalogue, configuration)) or "proposed by the language model"
        if _expects_nothing(expected, tries):
            if not choice.faster or not self._overrules_left(tries):
                raise UnusableError("the engine expects this configuration to save nothing that is worth an evaluation")
            reason, expected = OVERRULED + reason, expected.model_copy(update={"saving": None})
        self._expected_faster[len(tries) + 1] = choice.faster
        return expected.model_copy(update={"why": plain(reason, _LONGEST_REASON)})

    def _overrules_left(self, tries: Sequence[Try]) -> int:
        """How often the model may still try what the engine expects nothing of."""
        used = sum(each.why.startswith(OVERRULED) for each in tries)
        return max(int(_OVERRULES * (self.evaluations or _UNKNOWN_BUDGET)) - used, 0)

    def _predicted(self, plan: Plan) -> Suggestion:
        """What the model of the step says of a plan that the built-in proposer does not consider."""
        found = expect(self.study, [plan])[0]
        step, held = found.step_time, found.memory
        predicted = Expectation(
            step_time_s=step.value if step else None, low_s=step.low if step else None,
            high_s=step.high if step else None, hbm_bytes=held.total.value if held else None,
        )  # fmt: skip
        return Suggestion(configuration=str(plan), why="", predicted=predicted)

    def _facts(self, tries: Sequence[Try]) -> Answer:
        best = best_of(tries)
        left = None if self.evaluations is None else self.evaluations - len(tries)
        candidates = [each.model_dump(mode="json", exclude_none=True) for each in self.guided.best(tries, CANDIDATES)]
        return {
            "tries": [each.model_dump(mode="json", exclude_none=True) for each in tries],
            "best": {"configuration": best.configuration, "step_time_s": best.step_time_s} if best else None,
            "candidates": candidates,
            "left": left,
            "overrules_left": self._overrules_left(tries),
            "your_last": self._verdict(tries),
        }

    @cached_property
    def _records(self) -> PrecedentsAnswer:
        """Precedents of the run, which no try changes."""
        return Precedents(limit=RECORDS).answer(Inquiry(self.study))

    def _catalogue(self, tries: Sequence[Try], notes: NotesAnswer) -> Catalogue:
        """What the model may refer to: tries and candidates by their configuration, records and notes."""
        found = Catalogue()
        found.record("precedents", self._records)
        found.record("notes", notes)
        for each in (*tries, *self.guided.best(tries, CANDIDATES)):
            subject, outcome, expected = (
                each.configuration.replace(" ", ","),
                getattr(each, "outcome", None),
                each.predicted,
            )
            found.plans[frozenset(subject.lower().split(","))] = subject
            for name, value, unit, kind in (
                ("step_time", expected and expected.step_time_s, "s", Provenance.MODELLED),
                ("hbm", expected and expected.hbm_bytes, "bytes", Provenance.MODELLED),
                ("measured_step_time", outcome and outcome.step_time_s, "s", Provenance.MEASURED),
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
    return best is not None and low is not None and low > best.step_time_s


def _subject(tries: Sequence[Try]) -> str:
    """What notes are looked up for: what the last try showed, or how its plan is sharded."""
    last = tries[-1]
    said = [f"{each.explanation} {each.suggestion}" for each in (last.outcome.feedback if last.outcome else ())]
    return plain("; ".join(said) or f"step time of {last.configuration}", 400)


def _may_be_repeated(each: Try) -> bool:
    return each.outcome is not None and (each.outcome.status == "lost" or "NOISE" in each.outcome.codes)


def _words(faster: bool) -> str:
    return "faster than the best" if faster else "not faster than the best"
