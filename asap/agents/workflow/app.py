"""The agents: an analyzer, a proposal agent and a critic, with a check after each; and a coordinator that talks.

open ─▶ analyzer ─▶ assess ─▶ proposal ─▶ choose ─▶ critic ─▶ assemble

The command line runs the workflow alone; under ``adk run`` and ``adk web`` it is a tool of the coordinator.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.adk.workflow import BaseNode, Workflow
from google.genai import types
from pydantic import BaseModel

from asap.agents.grounding.catalogue import Catalogues
from asap.agents.grounding.plugin import GroundingPlugin, spoken
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.models import language_model
from asap.agents.llm.roles import ANSWER, WORKFLOW, engine_summary
from asap.agents.settings import BUILTIN, Settings
from asap.agents.tools.toolbox import Tool, Toolbox
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.agents.workflow.nodes import Nodes
from asap.agents.workflow.protocol import SCHEMAS, AnalysisRequest, read_answer, usable
from asap.answers.inquiries import Inquiries
from asap.core.files import data_folder

_LEFT_OUT = {
    "title", "default", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "minItems", "maxItems",
}  # fmt: skip
"""What a declaration can do without: a call that breaks a limit is answered by an error that names it."""


class DeclaredTool(FunctionTool):
    """A function whose declaration has its purpose in one sentence, and the type and the meaning of each parameter.

    Args:
        function: behind it.
        told: meanings of parameters that the instructions have.
    """

    def __init__(self, function: Callable[..., Any], told: Collection[str] = ()):
        super().__init__(function)
        self._told = told

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        found = super()._get_declaration()
        if found is None:
            return None
        purpose = " ".join((found.description or "").split()).split(". ")[0].rstrip(".")
        schema = shortened(found.parameters_json_schema or {})
        for _, part in _described(schema):
            if part["description"] in self._told:
                del part["description"]
        return found.model_copy(update={"description": purpose, "parameters_json_schema": schema or None})

    @property
    def meanings(self) -> Iterator[tuple[str, str]]:
        """Each parameter that is described, with its meaning."""
        declared = self._get_declaration()
        for name, part in _described((declared and declared.parameters_json_schema) or {}):
            yield name, part["description"]


def _described(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The parameters, or what they list, that have a description, by the name of one."""
    parts = [(name, part) for name, one in schema.get("properties", {}).items() for part in (one, one.get("items", {}))]
    return [(name.removesuffix("s"), part) for name, part in parts if "description" in part]


def shortened(schema: Any) -> Any:
    """A JSON schema without titles, defaults and limits; a parameter that may be null is one that may be left out."""
    if isinstance(schema, list):
        return [shortened(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    types_ = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(types_) == 1:
        schema = types_[0] | {name: value for name, value in schema.items() if name != "anyOf"}
    return {
        name: {key: shortened(one) for key, one in value.items()} if name == "properties" else shortened(value)
        for name, value in schema.items()
        if name not in _LEFT_OUT
    }


COMPACTION_INTERVAL, COMPACTION_OVERLAP = 4, 1
"""Turns of a conversation after which google-adk sums up the older ones; of the summed-up ones, those kept."""


def agent(
    name: str,
    model: BaseLlm,
    settings: Settings,
    description: str,
    tools: Sequence[Any],
    schema: type[BaseModel] | None = None,
    more: str = "",
) -> LlmAgent:
    """An agent with the prompt of its name.

    Args:
        name: of the agent.
        model: behind it.
        settings: with temperature and limit of an answer.
        description: of what it does.
        tools: functions and workflows that it may call.
        schema: of its answer; text without one.
        more: stands after its prompt, and is cached with it.
    """
    declared = [DeclaredTool(one) for one in tools if callable(one)]
    meanings = Counter(meaning for one in declared for meaning in one.meanings)
    often = {meaning: parameter for (parameter, meaning), count in meanings.items() if count > 1}
    told = "".join(f"\n- `{parameter}`: {meaning}" for meaning, parameter in often.items())
    prompt = (data_folder("prompts") / f"{name}.md").read_text(encoding="utf-8")
    return LlmAgent(
        name=name,
        model=model,
        description=description,
        static_instruction=prompt + (f"\n## Arguments of tools\n{told}\n" if told else "") + more,
        tools=[DeclaredTool(one, often) if callable(one) else one for one in tools],
        output_schema=schema,
        generate_content_config=types.GenerateContentConfig(
            temperature=settings.temperature, max_output_tokens=settings.max_answer_tokens
        ),
    )


def app(name: str, root: BaseNode, plugins: Sequence[BasePlugin], settings: Settings) -> App:
    """An app; with a language model its conversations are summed up by google-adk as they grow."""
    compacted = None
    if settings.model != BUILTIN:
        compacted = EventsCompactionConfig(compaction_interval=COMPACTION_INTERVAL, overlap_size=COMPACTION_OVERLAP)
    return App(name=name, root_agent=root, plugins=[*plugins], events_compaction_config=compacted)


LOOKUPS = 1
"""Calls of a model in which an agent may look things up, several at once, before it is asked for its answer."""
CORRECTIONS = 1


class ProtocolPlugin(BasePlugin):
    """Reads, checks and repairs the answers of agents, by what each answers and the field that takes plain text."""

    def __init__(self, schemas: dict[str, tuple[type[BaseModel], str]], checks: dict[str, Callable[[Any], list[str]]]):
        super().__init__(name="protocol")
        self._schemas, self._checks = schemas, checks
        self._calls: dict[tuple[str, str], int] = defaultdict(int)
        self._refused: dict[tuple[str, str], int] = defaultdict(int)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Of the answer's schema what a model needs; after look-ups only the answer is left to give."""
        key = callback_context.invocation_id, callback_context.agent_name
        if callback_context.agent_name not in self._schemas:
            return
        self._calls[key] += 1
        for one in _declared(llm_request):
            if one.name == ANSWER:
                one.parameters_json_schema = shortened(one.parameters_json_schema)
        if self._calls[key] > LOOKUPS and ANSWER in llm_request.tools_dict:
            llm_request.tools_dict = {ANSWER: llm_request.tools_dict[ANSWER]}
            for tool in llm_request.config.tools or ():
                if isinstance(tool, types.Tool):
                    tool.function_declarations = [one for one in tool.function_declarations or () if one.name == ANSWER]
            mode = types.FunctionCallingConfigMode.ANY
            calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=[ANSWER])
            llm_request.config.tool_config = types.ToolConfig(function_calling_config=calling)

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Text in the place of an answer is read as the answer."""
        schema = self._schemas.get(callback_context.agent_name)
        content = llm_response.content
        if schema is None or llm_response.partial or content is None:
            return None
        text = spoken(content).strip()
        if not text or any(part.function_call for part in content.parts or ()):
            return None
        call = types.FunctionCall(name=ANSWER, args=read_answer(text, *schema))
        given = types.Content(role="model", parts=[types.Part(function_call=call)])
        return llm_response.model_copy(update={"content": given})

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Complaints go back, once; then what can be used of the answer is taken."""
        agent = tool_context.agent_name
        if tool.name != ANSWER or agent not in self._schemas:
            return None
        answer, wrong = usable(tool_args, self._schemas[agent][0])
        wrong += self._checks[agent](answer) if agent in self._checks else []
        key = tool_context.invocation_id, agent
        if wrong and self._refused[key] < CORRECTIONS:
            self._refused[key] += 1
            return {"complaint": "correct only what is named, and answer again", "corrections": wrong}
        tool_args.clear()
        tool_args.update(answer.model_dump(mode="json"))
        return None


def _declared(request: LlmRequest) -> Iterator[types.FunctionDeclaration]:
    tools = (tool for tool in request.config.tools or () if isinstance(tool, types.Tool))
    return (one for tool in tools for one in tool.function_declarations or ())


APP = "agents"
"""Name of the app, under which its conversations are kept."""
COORDINATOR = "coordinator"


class Analysis(NamedTuple):
    """The app of an analysis, and the nodes that keep what its agents have finished."""

    app: App
    nodes: Nodes


def build_analysis(
    studies: Inquiries, settings: Settings, memory: BasePlugin | None = None, meter: UsageMeter | None = None
) -> Analysis:
    """The workflow alone.

    Args:
        studies: where experiments are opened.
        settings: with the language model.
        memory: writes Sharding Memory.
        meter: enforces the limits of a run.

    Raises:
        UsageError: no such model is known.
    """
    box = Toolbox(studies)
    nodes = Nodes(studies, box.catalogues)
    workflow = _workflow(nodes, box, language_model(settings, meter), settings)
    return Analysis(app(APP, workflow, _plugins(memory, box.catalogues, nodes, settings.model), settings), nodes)


def build_app(studies: Inquiries, settings: Settings, more: Sequence[Tool] = (), name: str = APP) -> App:
    """The coordinator with the workflow and the queries as its tools; raises like :func:`build_analysis`.

    Args:
        studies: where experiments are opened.
        settings: with the language model.
        more: tools of the coordinator beside the engine's.
        name: of the app.
    """
    box, model = Toolbox(studies), language_model(settings)
    nodes = Nodes(studies, box.catalogues)
    coordinator = agent(
        COORDINATOR, model, settings, "Talks with the engineer and has experiments analysed.",
        [_workflow(nodes, box, model, settings), *box.all, *more],
    )  # fmt: skip
    return app(name, coordinator, _plugins(None, box.catalogues, nodes, settings.model), settings)


def _plugins(memory: BasePlugin | None, catalogues: Catalogues, nodes: Nodes, model: str) -> list[BasePlugin]:
    """The memory first: it holds what a model said before anything was made of it. The built-in one says what the
    engine says."""
    checks = {"analyzer": nodes.against_assessment, "proposal": nodes.against_judgement}
    texts = {WORKFLOW: engine_summary, "discuss": lambda answer: "\n".join(map(str, answer.get("lines", ())))}
    speakers = () if model == BUILTIN else (COORDINATOR,)
    return [
        memory or MemoryPlugin(), ProtocolPlugin(SCHEMAS, checks), GroundingPlugin(catalogues, speakers, texts)
    ]  # fmt: skip


def _workflow(nodes: Nodes, box: Toolbox, model: BaseLlm, settings: Settings) -> Workflow:
    analyzer = agent(
        "analyzer", model, settings, "Reads the facts of a run and says what holds it back.",
        [tool for tool in box.run if tool.__name__ in {"operation", "trace", "flags"}], SCHEMAS["analyzer"][0],
    )  # fmt: skip
    proposal = agent(
        "proposal", model, settings, "Chooses plans among the candidates of the engine, and untested ideas.",
        [*box.choice, *(tool for tool in box.library if tool.__name__ in {"precedents", "notes"})],
        SCHEMAS["proposal"][0],
    )  # fmt: skip
    critic = agent("critic", model, settings, "Says what speaks against a choice.", box.critique, SCHEMAS["critic"][0])
    return Workflow(
        name=WORKFLOW,
        description="Analyse an experiment from its profile to three proposals. Takes the ID of the experiment.",
        input_schema=AnalysisRequest,
        edges=[
            ("START", nodes.open_experiment, analyzer, nodes.assess, proposal, nodes.choose, critic, nodes.assemble)
        ],
    )
