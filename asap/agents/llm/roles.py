"""What the built-in model answers in each role of an analysis, from the facts that it is asked with; no google-adk."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asap.agents.tools.toolbox import Answer
from asap.diagnosis import Bottleneck
from asap.reports.answers.compact import unrolled

if TYPE_CHECKING:
    from google.genai import types


@dataclass(frozen=True)
class AgentTurn:
    """The last thing that was asked, and the answers of tools to it by name, the latest of each.

    Args:
        asked: in the words of who asks.
        answers: of tools since.
        offered: names of the tools that may be called.
        experiment: the one that a tool was called for last, in this turn or before.
    """

    asked: str
    answers: dict[str, Answer] = field(default_factory=dict)
    offered: frozenset[str] = frozenset()
    experiment: str | None = None

    @classmethod
    def of(cls, contents: "Sequence[types.Content]", offered: Iterable[str] = ()) -> "AgentTurn":
        """Read a conversation from its last question on."""
        asked, answers, experiment = "", {}, None
        for content in contents:
            for part in content.parts or ():
                if part.function_call:
                    experiment = (part.function_call.args or {}).get("experiment", experiment)
                if part.text and content.role == "user":
                    asked, answers = part.text, {}
                elif part.function_response and part.function_response.name:
                    answers[part.function_response.name] = dict(part.function_response.response or {})
        return cls(asked, answers, frozenset(offered), experiment)

    @property
    def request(self) -> Answer:
        """The question as JSON, as one agent hands it to another; empty if it is not."""
        try:
            request = json.loads(self.asked)
        except ValueError:
            return {}
        return request if isinstance(request, dict) else {}


ANSWER = "set_model_response"
WORKFLOW = "analyze_experiment"
DISCUSS = "discuss"
USAGE = (
    "I analyse training runs. Say: analyze EXPERIMENT, or EXPERIMENT: QUESTION. `asap experiments list` shows what"
    " there is."
)

_NAMED = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*):\s+(\S.*)", re.DOTALL)
"""A first question, behind the experiment that it is about."""
_REQUEST = re.compile(r"/?analy[sz]e\s+[\"'`]?([A-Za-z0-9][A-Za-z0-9._-]*)", re.IGNORECASE)


@dataclass(frozen=True)
class ToolCall:
    """A tool to call."""

    tool: str
    arguments: dict[str, Any]


Action = tuple[ToolCall, ...] | str


def coordinate(turn: AgentTurn) -> Action:
    """Have the experiment analysed, report the result."""
    request = _REQUEST.search(turn.asked)
    if request is None:
        return _discuss(turn)
    arguments = {"experiment": request.group(1)}
    for tool in ("run", WORKFLOW):
        if tool not in turn.answers:
            return (ToolCall(tool, arguments),)
        if "error" in turn.answers[tool]:
            return _refusal(turn.answers[tool])
    return engine_summary(turn.answers[WORKFLOW])


def _discuss(turn: AgentTurn) -> Action:
    """Pass a message on to the chat over the last analysis, or over the experiment that it names."""
    named = _NAMED.match(turn.asked) if turn.experiment is None else None
    experiment, message = named.groups() if named else (turn.experiment, turn.asked)
    if DISCUSS not in turn.offered or experiment is None:
        return USAGE
    if DISCUSS not in turn.answers:
        return (ToolCall(DISCUSS, {"experiment": experiment, "message": message}),)
    answer = turn.answers[DISCUSS]
    return _refusal(answer) if "error" in answer else "\n".join(map(str, answer.get("lines", ())))


def engine_summary(result: Mapping[str, Any]) -> str:
    """The result of the workflow in the engine's own words."""
    lines = [f"{p['rank']}. {p['title']}: {p['plan']}" for p in result.get("proposals", ())]
    return "\n".join([*lines, str(result.get("recommendation", ""))])


def analyse(turn: AgentTurn) -> Action:
    """Report the findings among the facts; the bottleneck only where it was measured."""
    found = unrolled(turn.request.get("facts", {}).get("bottleneck", {}))
    kind = found["bottleneck"] if found.get("basis") == "measured" else Bottleneck.INSUFFICIENT_EVIDENCE.value
    answer = {
        "bottleneck": str(kind).replace(" ", "_"),
        "statement": found.get("statement") or _refusal(found),
        "evidence": [finding["finding"] for finding in found.get("findings", ())],
        "missing": list(found.get("missing", ())),
    }
    return (ToolCall(ANSWER, answer),)


def choose(turn: AgentTurn) -> Action:
    """Take the engine's choice among the facts; it proposes its untested ideas itself."""
    listed = unrolled(turn.request.get("facts", {}).get("candidates", {}))
    strategies = {candidate["plan"]: candidate.get("strategy") for candidate in listed.get("candidates", ())}
    picks = [{"plan": plan, "reason": strategies.get(plan) or plan} for plan in listed.get("proposals", ())]
    return (ToolCall(ANSWER, {"picks": picks}),)


def criticise(turn: AgentTurn) -> Action:
    """Leave the doubt to the engine's intervals."""
    return (ToolCall(ANSWER, {}),)


ROLES: dict[str, Callable[[AgentTurn], Action]] = {
    "coordinator": coordinate, "analyzer": analyse, "proposal": choose, "critic": criticise,
}  # fmt: skip


def _refusal(answer: dict[str, Any]) -> str:
    hint = f" ({answer['hint']})" if answer.get("hint") else ""
    return f"{answer['error']}{hint}" if answer.get("error") else ""
