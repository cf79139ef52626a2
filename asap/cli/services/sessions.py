"""``asap sessions``: what was said and done earlier."""

from enum import StrEnum
from typing import Annotated

import typer

from asap.cli.shared.options import session_names
from asap.cli.shared.output import Form, Plain, print_json, print_rows
from asap.cli.shared.progress import progress

app = typer.Typer(no_args_is_help=True, help="List, read, check, export and replay earlier sessions.")

SUMMARY = 160


class Export(StrEnum):
    """What a session is exported as."""

    MARKDOWN = "markdown"
    JSON = "json"


Session = Annotated[
    str, typer.Argument(help="Name of a session, as `asap sessions list` shows it.", autocompletion=session_names)
]


@app.command("list")
def list_sessions(format: Form = Plain.TERMINAL) -> None:
    """List all sessions, the most recent last."""
    from asap.sharding_memory import readable_sessions, verify_session

    found = [(name, verify_session(name)) for name, _ in reversed(list(readable_sessions()))]
    document = [{"session": name, "records": verdict.records, "ok": verdict.ok} for name, verdict in found]
    rows = ((name, verdict.records, "intact" if verdict.ok else verdict.reason) for name, verdict in found)
    print_rows(format, document, ("session", "records", "state"), rows)


@app.command()
def show(
    session: Session,
    agent: Annotated[str | None, typer.Option(help="Only records of this agent: analyzer, proposal, chat, …")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only records of this kind: user_input, tool_call, model_response, … May be repeated."),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only errors, refused calls and failed answers.")] = False,
    format: Form = Plain.TERMINAL,
) -> None:
    """Show the records of a session, one per line, or in full as JSON."""
    from dataclasses import asdict

    from asap.sharding_memory import read_session
    from asap.sharding_memory.dialogue import described
    from asap.sharding_memory.selection import selected

    records = selected(read_session(session), agent, kind or (), failed=failed)
    document = {"session": session, "records": [asdict(record) for record in records]}
    rows = ((r.sequence, f"{r.time:%H:%M:%S.%f}"[:-3], r.kind.value, described(r, SUMMARY)) for r in records)
    print_rows(format, document, ("#", "time (UTC)", "kind", "what"), rows)


@app.command()
def verify(session: Session, format: Form = Plain.TERMINAL) -> None:
    """Check that no record was altered, removed or truncated. Exit code 4 if one was."""
    from dataclasses import asdict

    from asap.core.errors import BadInputError
    from asap.sharding_memory import verify_session

    verdict = verify_session(session)
    if format is Plain.JSON:
        print_json(asdict(verdict))
    elif verdict.ok:
        print(f"{session}: intact, {verdict.records} records, head {verdict.head}")
    if not verdict.ok:
        raise BadInputError(f"{verdict.reason} (after {verdict.records} good records)", where=session)


@app.command()
def export(
    session: Session,
    format: Annotated[Export, typer.Option(help="Output format.")] = Export.MARKDOWN,
) -> None:
    """Print a session as a dialogue, or its records as JSON."""
    from asap.sharding_memory import export_session

    print(export_session(session, format.value), end="")


@app.command()
def replay(session: Session, format: Form = Plain.TERMINAL) -> None:
    """Replay a session offline. The model's answers are as recorded, the tools run for real. Exit code 4 on
    divergence."""
    from dataclasses import asdict

    from asap.core.errors import BadInputError
    from asap.experiments import ExperimentStore
    from asap.replay.replay import replay as run_again

    with progress() as show:
        found = run_again(session, ExperimentStore(), show)
    if format is Plain.JSON:
        print_json({"schema": "asap.replay/2", **asdict(found)})
    else:
        print(f"{session}, replayed as {found.replayed_as}: {found.steps} steps, the result is {found.verdict}")
    if found.divergence is not None:
        raise BadInputError(str(found.divergence), where=session)
