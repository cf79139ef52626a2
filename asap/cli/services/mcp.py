"""``asap mcp``: the engine's queries for other agents."""

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asap.experiments.create import Statement


def mcp() -> None:
    """Offer the same queries to other agents, over MCP."""
    from asap.agents.tools.mcp_server import build_server
    from asap.experiments import ExperimentStore

    build_server(ExperimentStore(), _analyze).run("stdio")


def _analyze(target: str, stated: "Statement") -> str:
    from asap.agents.workflow.analyze import analyze
    from asap.experiments import ExperimentStore
    from asap.reports.markdown import to_markdown

    try:
        return to_markdown(analyze(target, store=ExperimentStore(), stated=stated).analysis)
    finally:
        gc.collect()  # the agents of a run refer to each other: 3 MiB
