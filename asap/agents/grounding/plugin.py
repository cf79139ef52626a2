"""The check of an app: what its agents say is shown with values for references, and their own words marked.

It sees every answer of a model, whether on the command line, in the chat, under ``adk run`` or ``adk web``.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from asap.agents.grounding.catalogue import Catalogue, Catalogues, normal
from asap.agents.grounding.prose import sentences
from asap.agents.grounding.verdict import check, rendered

EXPERIMENT = "experiment"
_NONE: Mapping[str, Callable[[Any], str]] = {}


class GroundingPlugin(BasePlugin):
    """Holds the words of agents against what tools answered.

    Args:
        catalogues: filled by the tools.
        speakers: agents that speak to the engineer; what others answer goes through a schema.
        texts: the engine's own words in the answers of tools that give no figures, by tool.
    """

    def __init__(
        self, catalogues: Catalogues, speakers: Collection[str], texts: Mapping[str, Callable[[Any], str]] = _NONE
    ):
        super().__init__(name="grounding")
        self.catalogues, self._speakers, self._texts = catalogues, frozenset(speakers), texts
        self._experiment: dict[str, str] = {}
        self._open: dict[tuple[str, str], list[str]] = {}

    def catalogue(self, session: str) -> Catalogue:
        """What was answered in a session of the experiment that it is about."""
        experiment = self._experiment.get(session)
        return self.catalogues.of(experiment) if experiment else self.catalogues.last

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        """What the engineer says may be repeated."""
        self.catalogues.hear(spoken(user_message))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Which experiment a session is about."""
        if isinstance(named := tool_args.get(EXPERIMENT), str):
            self._experiment[tool_context.session.id] = named

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """What a tool says in words may be repeated."""
        if tool.name in self._texts and isinstance(result, Mapping):
            catalogue = self.catalogue(tool_context.session.id)
            catalogue.lines |= {normal(one) for one in sentences(self._texts[tool.name](result))}

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """The words as they are shown. Of an answer that comes in pieces, each line once it is complete."""
        content = llm_response.content
        if callback_context.agent_name not in self._speakers or content is None or not content.parts:
            return None
        said = spoken(content)
        key = callback_context.invocation_id, callback_context.agent_name
        catalogue = self.catalogue(callback_context.session.id)
        if llm_response.partial:
            raw, shown = self._open.setdefault(key, ["", ""])
            lines, _, rest = (raw + said).rpartition("\n")
            piece = f"{grounded(lines, catalogue)}\n" if lines else ""
            self._open[key] = [rest, shown + piece]
            return _with_text(llm_response, piece)
        raw, shown = self._open.pop(key, ["", ""])
        if not said:
            return None
        text = shown + grounded(raw, catalogue) if shown else grounded(said, catalogue)
        return _with_text(llm_response, text)


def spoken(content: types.Content | None) -> str:
    """The words of a message, without thoughts."""
    parts = (content.parts if content else None) or ()
    return "".join(part.text for part in parts if part.text and not part.thought)


def grounded(text: str, catalogue: Catalogue) -> str:
    """Lines as they are shown, the model's own words marked."""
    lines = ((line[: len(line) - len(line.lstrip(" "))], line) for line in text.split("\n"))
    return "\n".join(indent + rendered(check(line, catalogue)) for indent, line in lines)


def _with_text(response: LlmResponse, text: str) -> LlmResponse:
    """The response with one text in the place of all of its own; thoughts and calls stay."""
    assert response.content is not None
    parts = [part for part in response.content.parts or () if not part.text or part.thought]
    content = types.Content(role=response.content.role, parts=[types.Part(text=text), *parts])
    return response.model_copy(update={"content": content})
