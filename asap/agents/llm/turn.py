"""The last request to an agent and the answers of its tools since: all that the built-in model reads."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from google.genai import types

from asap.agents.tools.results import Answer


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
    def of(cls, contents: Sequence[types.Content], offered: Iterable[str] = ()) -> "AgentTurn":
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
