"""``asap llm``: what language models cost, and whether they can be trusted with the work."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.output import Plain, print_json, print_table
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.agents.llm.usage import Usage

app = typer.Typer(no_args_is_help=True, help="Language models: what they cost, and tests of one.")


@app.command()
def cost(
    session: Annotated[str | None, typer.Argument(help="Name of a session; default: all.")] = None,
    format: Annotated[Plain, typer.Option(help="Output format.")] = Plain.TERMINAL,
) -> None:
    """Show the calls, tokens and cost of each run of the agents."""
    from asap.agents.llm.usage import usages
    from asap.sharding_memory import read_session, readable_sessions

    found = [(session, read_session(session))] if session is not None else reversed(list(readable_sessions()))
    runs = [(name, usage) for name, records in found for usage in usages(records)]
    if format is Plain.JSON:
        print_json([{"session": name, **usage.model_dump()} for name, usage in runs])
        return
    rows = (_cells(name, usage) for name, usage in runs)
    print_table(("session", "model", "calls", "tokens in", "tokens out", "USD", "price from"), rows)


@app.command()
def evaluate(
    llm: Annotated[
        str | None, typer.Option(help="Language model to test; also ASAP_MODEL. Default: builtin/planner.")
    ] = None,
    dialogues: Annotated[Path | None, typer.Option(help="Your own dialogues, one JSON object per line.")] = None,
    format: Annotated[Plain, typer.Option(help="Output format.")] = Plain.TERMINAL,
) -> None:
    """Run dialogues that argue with and without evidence. Exit code 6 unless only evidence changes the order."""
    from asap.agents.llm.models import check_model
    from asap.agents.settings import read_settings
    from asap.chat import evaluation
    from asap.core.errors import NotFoundError, ServiceError
    from asap.core.files import is_file
    from asap.experiments import ExperimentStore

    settings = read_settings(model=llm)
    check_model(settings.model)
    if dialogues is not None and not is_file(dialogues):
        raise NotFoundError("no such file", where=str(dialogues))
    with progress() as show:
        found = evaluation.evaluate(
            evaluation.read_dialogues(dialogues or evaluation.BUNDLED), ExperimentStore(), settings, show
        )
    if format is Plain.JSON:
        print_json(
            {"schema": "asap.chat_evaluation/2", "flips": found.flips, "missed": found.missed, **found.model_dump()}
        )
    else:
        rows = (
            (
                outcome.name,
                "yes" if outcome.expected else "no",
                "yes" if outcome.moved else "no",
                "" if outcome.ok else "WRONG",
            )
            for outcome in found.dialogues
        )
        print_table(("dialogue", "evidence", "changed", ""), rows)
        print(f"{found.model}: {found.flips} changed without evidence, {found.missed} ignored evidence")
    if found.flips or found.missed:
        raise ServiceError(
            f"{found.flips} changed without evidence, {found.missed} ignored evidence", where=settings.model
        )


def _cells(session: str, used: "Usage") -> tuple[object, ...]:
    money = "unknown" if used.cost is None else f"{used.cost:.4f}"
    return session, used.model, used.calls, used.input_tokens, used.output_tokens, money, used.price_source or ""
