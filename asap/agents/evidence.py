"""Listens to the engine's tools, so that what a model writes can be held against what they said."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, ToolContext

from asap.agents.guard import Told


class Evidence(BasePlugin):
    """What the tools of the engine have said, session by session.

    Args:
        tools: names of the engine's tools; what other tools answer may be a model's own words.
    """

    def __init__(self, tools: Collection[str]):
        super().__init__(name="evidence")
        self._tools = frozenset(tools)
        self._told: dict[str, Told] = defaultdict(Told)

    def told(self, session: str) -> Told:
        """All that the tools have said in a session, as far as this process heard it."""
        return self._told[session]

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """Remember an answer."""
        if tool.name in self._tools:
            self._told[tool_context.session.id].hear(tool.name, result)
