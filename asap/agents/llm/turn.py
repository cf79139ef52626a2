"""The last request to an agent and the answers of its tools since: all that the built-in model reads."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from google.genai import types

from asap.agents.tools.results import Answer


@dataclass(frozen=True)
class AgentTurn:
    """The last thing that was asked, and the answers of tools to it by name, the latest of each."""

    asked: str
    answers: dict[str, Answer] = field(default_factory=dict)

    @classmethod
    def of(cls, contents: Sequence[types.Content]) -> "AgentTurn":
        """Read a conversation from its last question on."""
        asked, answers = "", {}
        for content in contents:
            for part in content.parts or ():
                if part.text and content.role == "user":
                    asked, answers = part.text, {}
                elif part.function_response and part.function_response.name:
                    answers[part.function_response.name] = dict(part.function_response.response or {})
        return cls(asked, answers)

    @property
    def request(self) -> Answer:
        """The question as JSON, as one agent hands it to another; empty if it is not."""
        try:
            request = json.loads(self.asked)
        except ValueError:
            return {}
        return request if isinstance(request, dict) else {}
