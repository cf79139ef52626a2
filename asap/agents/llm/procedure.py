"""The procedure of the built-in model, role by role: the answers so far decide the next action."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asap.agents.llm.turn import AgentTurn
from asap.diagnosis import Bottleneck
from asap.reports.answers.compact import unrolled

ANSWER = "set_model_response"
WORKFLOW = "analyze_experiment"
DISCUSS = "discuss"
USAGE = "I analyse training runs. Say: analyze EXPERIMENT. `asap experiments list` shows what there is."

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
    """Pass a message on to the chat over the last analysis, where there are both."""
    if DISCUSS not in turn.offered or turn.experiment is None:
        return USAGE
    if DISCUSS not in turn.answers:
        return (ToolCall(DISCUSS, {"experiment": turn.experiment, "message": turn.asked}),)
    answer = turn.answers[DISCUSS]
    return _refusal(answer) if "error" in answer else "\n".join(map(str, answer.get("lines", ())))


def engine_summary(result: Mapping[str, Any]) -> str:
    """The result of the workflow in the engine's own words."""
    lines = [f"{p['rank']}. {p['title']}: {p['plan']}" for p in result.get("proposals", ())]
    return "\n".join([*lines, str(result.get("recommendation", ""))])


def analyse(turn: AgentTurn) -> Action:
    """Report the findings among the facts."""
    found = unrolled(turn.request.get("facts", {}).get("bottleneck", {}))
    answer = {
        "bottleneck": _measured(found),
        "statement": found.get("statement") or _refusal(found),
        "evidence": [finding["finding"] for finding in found.get("findings", ())],
        "missing": list(found.get("missing", ())),
    }
    return (ToolCall(ANSWER, answer),)


def _measured(found: Mapping[str, Any]) -> str:
    """The bottleneck that was measured; the model's word is not evidence."""
    if found.get("basis") != "measured":
        return Bottleneck.INSUFFICIENT_EVIDENCE.value
    return str(found["bottleneck"]).replace(" ", "_")


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
