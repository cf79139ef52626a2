"""The agents: the coordinator talks, the analyzer reads, the proposal agent chooses, and plain functions check.

coordinator ──▶ analyze_experiment: open ─▶ analyzer ─▶ proposal ─▶ check ─▶ assemble
                                                         ▲    │
                                                         └────┘ complaints, in the agent's own context
"""

from collections.abc import Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.workflow import RetryConfig, Workflow

from asap.agents.guardrails.transcript_plugin import TranscriptPlugin
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.models import language_model
from asap.agents.llm.procedure import WORKFLOW
from asap.agents.settings import Settings
from asap.agents.tools.toolbox import Tool, Toolbox
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.agents.workflow.nodes import ASSESSMENT, Nodes
from asap.agents.workflow.schemas import AnalysisRequest, Assessment, Judgement
from asap.answers.inquiries import Inquiries
from asap.core.files import data_folder

APP = "agents"
"""Name of the app, under which its conversations are kept."""

SCHEMA_RETRIES = RetryConfig(max_attempts=3, initial_delay=0.0, jitter=0.0, exceptions=["ValidationError"])
"""A model that answers in prose where the schema is asked for may try again."""


def build_app(
    studies: Inquiries,
    settings: Settings,
    plugin: BasePlugin | None = None,
    meter: UsageMeter | None = None,
    more: Sequence[Tool] = (),
    *,
    talks: bool = True,
) -> App:
    """The agents over a cache of studies, with one language model behind all of them.

    Args:
        studies: where experiments are opened.
        settings: with the language model.
        plugin: writes Sharding Memory.
        meter: enforces the limits of a run.
        more: tools of the coordinator beside the engine's.
        talks: whether the coordinator answers questions, with all tools, or only has an experiment analysed.

    Raises:
        UsageError: no such model is known.
    """
    model, toolbox = language_model(settings, meter), Toolbox(studies)
    evidence = TranscriptPlugin([tool.__name__ for tool in (*toolbox.all, *more)])
    own = (*toolbox.all, *more) if talks else toolbox.first
    tools: list[Any] = [_workflow(Nodes(studies, evidence, prompts()), toolbox, model), *own]
    coordinator = LlmAgent(
        name="coordinator",
        model=model,
        description="Talks with the engineer and has experiments analysed.",
        static_instruction=_prompt("coordinator"),
        tools=tools,
    )
    return App(name=APP, root_agent=coordinator, plugins=[plugin or MemoryPlugin(), evidence])


def _workflow(nodes: Nodes, toolbox: Toolbox, model: BaseLlm) -> Workflow:
    analyzer = LlmAgent(
        name="analyzer",
        model=model,
        description="Reads the facts of a run and says what holds it back.",
        static_instruction=_prompt("analyzer"),
        tools=[*toolbox.run],
        output_schema=Assessment,
        output_key=ASSESSMENT,
        retry_config=SCHEMA_RETRIES,
    )
    proposal = LlmAgent(
        name="proposal",
        model=model,
        description="Chooses three plans among the candidates of the engine.",
        static_instruction=_prompt("proposal"),
        tools=[*toolbox.library, *toolbox.choice],
        before_tool_callback=nodes.hear,
        output_schema=Judgement,
        retry_config=SCHEMA_RETRIES,
    )
    return Workflow(
        name=WORKFLOW,
        description="Analyse an experiment from its profile to three proposals. Takes the ID of the experiment.",
        input_schema=AnalysisRequest,
        edges=[("START", nodes.open_experiment, analyzer, proposal, nodes.check, nodes.assemble)],
    )


def prompts() -> tuple[str, ...]:
    """The instructions of all agents of an analysis."""
    return tuple(_prompt(agent) for agent in ("coordinator", "analyzer", "proposal"))


def _prompt(agent: str) -> str:
    return (data_folder("prompts") / f"{agent}.md").read_text(encoding="utf-8")
