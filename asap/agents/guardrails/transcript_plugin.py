"""Records the answers of the engine's tools, so that a model's words can be checked against them."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, ToolContext

from asap.agents.guardrails.transcript import Transcript


class TranscriptPlugin(BasePlugin):
    """The answers of the engine's tools, by session.

    Args:
        tools: names of the engine's tools; what other tools answer may be a model's own words.
    """

    def __init__(self, tools: Collection[str]):
        super().__init__(name="evidence")
        self._tools = frozenset(tools)
        self._transcript: dict[str, Transcript] = defaultdict(Transcript)

    def transcript(self, session: str) -> Transcript:
        """The answers of the tools in a session, in this process."""
        return self._transcript[session]

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """Remember an answer."""
        if tool.name in self._tools:
            self._transcript[tool_context.session.id].record(tool.name, result)
