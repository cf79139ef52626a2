"""The engine over the Model Context Protocol: the tools of ASAP's own agents, whole analyses, reports, and prompts."""

import asyncio
import tomllib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError, validate_call

from asap import __version__
from asap.agents.grounding.verdict import check, faults, rendered
from asap.agents.tools.toolbox import FACTS, Answer, ExperimentId, Tool, Toolbox, answering
from asap.answers.inquiries import Inquiries
from asap.answers.registry import complaint
from asap.core.errors import AsapError, NotFoundError, UsageError, extra_hint
from asap.core.files import data_folder
from asap.core.text import plain
from asap.experiments import ExperimentStore
from asap.experiments.create import NOTHING_STATED, Statement

if TYPE_CHECKING:
    from mcp.server import MCPServer

Analyze = Callable[[str, Statement], str]
"""An analysis of an experiment by its ID or path, with what is stated beside it, as Markdown."""

LISTED = 50


def _texts() -> dict[str, Any]:
    """What a client is told, and prompts for the usual tasks."""
    return tomllib.loads((data_folder("prompts") / "mcp.toml").read_text(encoding="utf-8"))


def build_server(store: ExperimentStore, analyze: Analyze) -> "MCPServer":
    """A server with every tool over the experiments of a store.

    Args:
        store: where experiments are looked up.
        analyze: runs a whole analysis.

    Raises:
        UsageError: the extra is not installed.
    """
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise UsageError("needs the extra mcp", where="asap mcp", hint=extra_hint("mcp")) from error
    listed = ", ".join(plain(name, 80) for name in store.ids()[:LISTED])
    instructions = f"{_texts()['instructions']} Experiments on record: {listed}."
    inquiries = Inquiries(store, "tool")
    box = Toolbox(inquiries)
    made = [_served(tool, reads=tool.__name__ not in FACTS[:2]) for tool in (*box.all, *box.facts, box.open)]
    made += [_served(tool) for tool in (_optimize(inquiries), answering(show_optimization), _check(box))]
    made.append(_served(_analysis(analyze, inquiries), reads=None, apart=True))
    server = MCPServer("asap", version=__version__, instructions=instructions, log_level="ERROR", tools=made)
    _add_reports(server)
    _add_prompts(server)
    return server


def _served(tool: Callable[..., Answer | str], *, reads: bool | None = True, apart: bool = False) -> Any:
    """A tool whose errors, of arguments too, are errors to the client, in one plain line.

    Args:
        tool: what it calls.
        reads: whether it changes nothing.
        apart: whether it is called in a thread of its own, for what runs an event loop.
    """
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool as McpTool
    from mcp.types import ToolAnnotations

    class Served(McpTool):
        async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
            try:
                answer = await asyncio.to_thread(self.fn, **arguments) if apart else self.fn(**arguments)
            except (AsapError, ValidationError) as error:
                raise ToolError(_one_line(error)) from error
            except Exception as error:
                raise ToolError(f"internal error: {type(error).__name__}") from error
            if "error" in answer and not isinstance(answer, str):
                hint = f" ({answer['hint']})" if answer.get("hint") else ""
                raise ToolError(f"{answer['error']}{hint}")
            return self.fn_metadata.convert_result(answer) if convert_result else answer

    made = McpTool.from_function(
        tool, annotations=ToolAnnotations(read_only_hint=reads, open_world_hint=False), structured_output=False
    )
    return Served.model_construct(**dict(made))


def _check(box: Toolbox) -> Tool:
    @answering
    def check_words(
        experiment: ExperimentId, words: Annotated[str, Field(description="what you are about to say")]
    ) -> Answer:
        """Check what you are about to say of a run: references such as {1.step_time} get value, unit, interval and
        provenance. `~` stands before each sentence that rests on no figure of the tools that were called, `°` before
        one whose figures do and whose words do not."""
        found = [check(line, box.catalogues.of(experiment)) for line in words.splitlines()]
        wrong = [one for line in found for one in faults(line)]
        return {"lines": [rendered(line) for line in found], "corrections": wrong}

    return check_words


def _optimize(inquiries: Inquiries) -> Tool:
    @answering
    def optimize(experiment: ExperimentId) -> Answer:
        """Find the fastest configuration of a run by the model alone, with what to paste. Nothing runs or compiles."""
        from asap.optimize.by_model import optimize_by_model

        return optimize_by_model(inquiries.study(experiment)).model_dump(
            mode="json", exclude_none=True, exclude={"schema_"}
        )

    return optimize


def show_optimization(session: Annotated[str, Field(description="its name")]) -> Answer:
    """Show a session of ``asap optimize``: every try with its outcome and feedback, the best so far, the cost."""
    from asap.optimize.by_space import report_of_any

    return report_of_any(session).model_dump(mode="json", exclude_none=True, exclude={"schema_"})


def _one_line(error: AsapError | ValidationError) -> str:
    return plain(complaint(error) if isinstance(error, ValidationError) else error)


def _analysis(run: Analyze, inquiries: Inquiries) -> Callable[[str], str]:
    @validate_call
    def analyze(experiment: ExperimentId) -> str:
        """Analyse an experiment from its profile to three proposals with their figures; the report as Markdown."""
        if experiment not in inquiries.opened:
            inquiries.store.get(experiment)
        return run(*inquiries.opened.get(experiment, (experiment, NOTHING_STATED)))

    return analyze


def _add_reports(server: "MCPServer") -> None:
    @server.resource("asap://report/{experiment}", mime_type="text/markdown")
    def report(experiment: str) -> str:
        """The report of the latest analysis of an experiment."""
        from mcp.server.mcpserver.exceptions import ResourceError

        from asap.reports.markdown import to_markdown
        from asap.sharding_memory.analyses import latest_session, stored_analysis

        try:
            session = latest_session(experiment)
            if session is None:
                raise NotFoundError("has not been analysed yet", where=plain(experiment, 80), hint="call analyze")
            return to_markdown(stored_analysis(session).analysis)
        except AsapError as error:
            raise ResourceError(_one_line(error)) from error


def _add_prompts(server: "MCPServer") -> None:
    for name, text in _texts()["tasks"].items():
        server.prompt(name=name, description=text.partition(". ")[2].format(experiment="the run"))(_prompt(text))


def _prompt(text: str) -> Callable[[str], str]:
    def prompt(experiment: str) -> str:
        return text.format(experiment=plain(experiment, 80))

    return prompt
