"""``asap serve``: the engine as a service for other programs."""

import gc

import typer

app = typer.Typer(no_args_is_help=True, help="Serve the engine to other programs.")


@app.callback()
def serve() -> None:
    """Serve the engine to other programs."""


@app.command("mcp")
def serve_mcp() -> None:
    """Serve the agents' tools to an MCP client (standard I/O)."""
    from asap.agents.tools.mcp_server import build_server
    from asap.experiments import ExperimentStore

    gc.enable()
    build_server(ExperimentStore(), _analyze).run("stdio")


def _analyze(experiment: str) -> str:
    from asap.agents.workflow.analyze import analyze
    from asap.experiments import ExperimentStore
    from asap.reports.markdown import to_markdown

    store = ExperimentStore()
    store.get(experiment)
    return to_markdown(analyze(experiment, store=store).analysis)
