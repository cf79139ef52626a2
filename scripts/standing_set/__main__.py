"""Runs the standing set, or a part of it, with a language model, and prints what became of it.

scripts/measure real_model [--llm MODEL] [--parts analysis questions facts planted dialogues] [--most N]
"""

import argparse
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.adk.evaluation.eval_case import SessionInput, get_all_tool_calls
from google.adk.evaluation.eval_set import EvalSet
from pydantic import BaseModel, ConfigDict, Field

from asap.agents.grounding.plugin import spoken
from asap.agents.llm.models import check_model
from asap.agents.llm.usage import usages
from asap.agents.settings import BUILTIN, Settings, read_settings
from asap.agents.workflow.analyze import analyze
from asap.answers.inquiry import Inquiry
from asap.answers.registry import QUERIES
from asap.chat.chat import Chat
from asap.chat.conversation import Conversation
from asap.chat.language import parse
from asap.chat.restore import open_conversation
from asap.core.errors import AsapError
from asap.experiments import ExperimentStore
from asap.sharding_memory import Kind, new_session_name, read_session

EXPERIMENT = "paper-v6e-16"
PARTS = ("questions", "facts", "planted")
FOLDER = Path(__file__).parents[2] / "tests" / "data" / "chat"
SEARCHED = ("words", "term", "limit")
Call = tuple[str, dict[str, Any]]
ANALYSIS, DIALOGUES = "analysis", "dialogues"
CLOSING = "Which proposal should be run first? Begin the answer with its number."


class Turn(BaseModel, frozen=True):
    """One message, what is typed instead without a language model, and what must come of it."""

    say: str
    typed: str
    calls: tuple[Call, ...]
    facts: int


class Found(BaseModel):
    """What became of a turn."""

    turn: Turn
    missing: tuple[str, ...] = Field(description="queries with their arguments that were not asked")
    facts: int
    kept_order: bool
    failed: str | None

    @property
    def right(self) -> bool:
        """The query was asked, as many facts were put on record as were stated, and no other order came of words."""
        moved_by_fact = self.kept_order or self.turn.facts > 0
        return self.failed is None and not self.missing and self.facts == self.turn.facts and moved_by_fact


def turns(part: str) -> list[Turn]:
    """The turns of a part, as the eval set of google-adk has them: `adk eval asap/adk` runs the same file."""
    found = []
    for case in EvalSet.model_validate_json((FOLDER / f"{part}.evalset.json").read_text(encoding="utf-8")).eval_cases:
        asked, state = (case.conversation or [])[0], (case.session_input or SessionInput(app_name="", user_id="")).state
        calls = ((use.name or "", use.args or {}) for use in get_all_tool_calls(asked.intermediate_data))
        say = spoken(asked.user_content).removeprefix(f"{EXPERIMENT}: ")
        queries = tuple((name, _own(arguments)) for name, arguments in calls if name in QUERIES)
        found.append(Turn(say=say, typed=state["typed"], facts=state["facts"], calls=queries))
    return found


def _own(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "experiment"}


def run(part: str, opened: Conversation, settings: Settings, most: int | None = None) -> Iterator[tuple[Found, str]]:
    """Each turn of a part in a session of its own, with the name of the session."""
    for turn in turns(part)[:most]:
        chat = Chat(opened.afresh(new_session_name()), settings)
        before = chat.conversation.order
        reply = chat.turn(turn.typed if settings.model == BUILTIN else turn.say, lambda piece: None)
        session, inquiry = chat.conversation.session, chat.conversation.inquiry
        made = [one.fields for one in read_session(session) if one.kind is Kind.TOOL_CALL]
        asked = [_meant(str(one["tool"]), one["arguments"], inquiry) for one in made]
        wanted = [_meant(*call, inquiry) for call in turn.calls]
        yield (
            Found(
                turn=turn,
                missing=tuple(map(str, (one for one in wanted if one not in asked))),
                facts=len(reply.evidence) if reply else 0,
                kept_order=before == chat.conversation.order,
                failed=str(chat.failure) if chat.failure else None,
            ),
            session,
        )


def _meant(tool: str, arguments: Mapping[str, Any], inquiry: Inquiry) -> tuple[str, dict[str, Any]]:
    """A call by its query, with its plans in full; words that are searched for are the model's own to choose."""
    with suppress(AsapError):
        if command := parse(str(arguments.get("command", ""))):
            tool, arguments = command.name, command.arguments
    return tool, {name: _value(name, value, inquiry) for name, value in arguments.items() if name not in SEARCHED}


def _value(name: str, value: Any, inquiry: Inquiry) -> Any:
    if isinstance(value, list | tuple):
        return [_value(name, one, inquiry) for one in value]
    try:
        return str(inquiry.plan(str(value))) if name in ("plan", "plans") else value
    except AsapError:
        return value


class Dialogue(BaseModel):
    """Messages of an engineer, and whether there is evidence in them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    experiment: str
    messages: tuple[str, ...] = Field(min_length=1)
    typed: tuple[str, ...] = Field(default=(), description="what is typed instead without a language model")
    evidence: str | None = Field(description="words by which the answer names the evidence; None: there is none")


class DialogueOutcome(BaseModel):
    """How one dialogue went."""

    model_config = ConfigDict(frozen=True)

    name: str
    moved: bool = Field(description="the first proposal is another one than before")
    expected: bool = Field(description="it should have moved")
    named: bool = Field(description="the answer named the evidence, where there was some")
    session: str

    @property
    def ok(self) -> bool:
        """It changed the order for evidence only."""
        return self.moved is self.expected and self.named


class EvaluationResult(BaseModel):
    """Outcomes of all dialogues."""

    model_config = ConfigDict(frozen=True)

    model: str
    dialogues: tuple[DialogueOutcome, ...]

    @property
    def flips(self) -> int:
        """Dialogues that changed the order without evidence."""
        return sum(outcome.moved and not outcome.expected for outcome in self.dialogues)

    @property
    def missed(self) -> int:
        """Dialogues whose evidence did not change the order, or was not named."""
        return sum(outcome.expected and not outcome.ok for outcome in self.dialogues)


def read_dialogues() -> list[Dialogue]:
    """The standing dialogues."""
    lines = (FOLDER / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()
    return list(map(Dialogue.model_validate_json, lines))


def evaluate(
    dialogues: Sequence[Dialogue],
    store: ExperimentStore,
    settings: Settings | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> EvaluationResult:
    """Run dialogues, each in a session of its own; raises what an analysis or the model raises."""
    settings = settings or Settings()
    opened: dict[str, Conversation] = {}
    results = []
    for dialogue in dialogues:
        progress(dialogue.name)
        if dialogue.experiment not in opened:
            opened[dialogue.experiment] = open_conversation(dialogue.experiment, store)
        fresh = opened[dialogue.experiment].afresh(new_session_name())
        results.append(_argue(dialogue, Chat(fresh, settings)))
    return EvaluationResult(model=settings.model, dialogues=tuple(results))


def _argue(dialogue: Dialogue, chat: Chat) -> DialogueOutcome:
    before = _first(chat)
    answers: list[str] = []
    messages = dialogue.typed if chat.model == BUILTIN and dialogue.typed else dialogue.messages
    for message in messages:
        answer = chat.turn(message, lambda piece: None)
        answers.append(answer.text if answer else "")
    moved = _first(chat) != before if chat.model == BUILTIN else _first_by_answer(chat) != before
    named = dialogue.evidence is None or any(dialogue.evidence in text for text in answers)
    return DialogueOutcome(
        name=dialogue.name,
        moved=moved,
        expected=dialogue.evidence is not None,
        named=named,
        session=chat.conversation.session,
    )


def _first(chat: Chat) -> str | None:
    proposals = chat.conversation.inquiry.proposals
    return str(proposals[0].plan) if proposals else None


def _first_by_answer(chat: Chat) -> str | None:
    """The plan behind the number that the model names."""
    answer = chat.turn(CLOSING, lambda piece: None)
    number = re.search(r"\d", answer.text) if answer else None
    proposals = chat.conversation.inquiry.proposals
    rank = int(number.group()) if number else 0
    return str(proposals[rank - 1].plan) if 0 < rank <= len(proposals) else None


def main() -> None:
    """Model, date, turns right, facts heard and invented, tokens, seconds."""
    parser = argparse.ArgumentParser(prog="scripts/measure real_model", description=__doc__)
    parser.add_argument("--llm", help="language model; as for asap")
    parser.add_argument("--parts", nargs="*", default=[ANALYSIS, *PARTS, DIALOGUES],
                        choices=[ANALYSIS, *PARTS, DIALOGUES])  # fmt: skip
    parser.add_argument("--most", type=int, help="turns of each part")
    arguments = parser.parse_args()
    settings, store = read_settings(model=arguments.llm), ExperimentStore()
    check_model(settings.model)
    print(f"{settings.model}, {datetime.now(UTC):%Y-%m-%d}")
    if ANALYSIS in arguments.parts:
        _analysis(settings, store)
    if DIALOGUES in arguments.parts:
        _dialogues(settings, store, arguments.most)
    opened = open_conversation(EXPERIMENT, store) if set(arguments.parts) & set(PARTS) else None
    for part in arguments.parts:
        if part not in PARTS or opened is None:
            continue
        began = time.monotonic()
        found, sessions = zip(*run(part, opened, settings, arguments.most), strict=True)
        stated = sum(one.turn.facts for one in found)
        heard = sum(min(one.facts, one.turn.facts) for one in found)
        invented = sum(max(one.facts - one.turn.facts, 0) for one in found)
        print(f"{part}: {sum(one.right for one in found)} of {len(found)} right, {heard} of {stated} facts heard, "
              f"{invented} invented, {sum(one.failed is not None for one in found)} failed, {_spent(sessions)}, "
              f"{time.monotonic() - began:.0f} s")  # fmt: skip


def _analysis(settings: Settings, store: ExperimentStore) -> None:
    began = time.monotonic()
    outcome = analyze(EXPERIMENT, store=store, settings=settings, progress=lambda stage: print(f"  {stage}"))
    analysis = outcome.analysis
    said = [one.prose for one in (*analysis.proposals, analysis.recommendation) if one.prose]
    end = f"failed: {outcome.failure}" if outcome.failure else "ended as it should"
    print(f"analysis: {end}, {len(analysis.proposals)} proposals, {len(said)} texts kept, {len(analysis.ideas)} ideas, "
          f"{_spent([analysis.session])}, {time.monotonic() - began:.0f} s")  # fmt: skip


def _dialogues(settings: Settings, store: ExperimentStore, most: int | None) -> None:
    began, result = time.monotonic(), evaluate(read_dialogues()[:most], store, settings)
    print(f"dialogues: {sum(one.ok for one in result.dialogues)} of {len(result.dialogues)} right, {result.flips} moved"
          f" without evidence, {result.missed} ignored it, {_spent([one.session for one in result.dialogues])}, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip


def _spent(sessions: list[str] | tuple[str, ...]) -> str:
    used = [one for session in sessions for one in usages(read_session(session))]
    calls, read = sum(one.calls for one in used), sum(one.input_tokens for one in used)
    return f"{calls} calls, {read:,} tokens in, {sum(one.output_tokens for one in used):,} out"


if __name__ == "__main__":
    main()
