"""``asap evaluate``: whether a model can be believed."""

from pathlib import Path
from typing import Annotated

import typer

from asap.cli.output import Plain, print_json, print_table, progress

app = typer.Typer(no_args_is_help=True, help="Put language models to the test.")


@app.command("chat")
def evaluate_chat(
    model: Annotated[
        str | None, typer.Option(help="The language model to test, also ASAP_MODEL; builtin/planner by default.")
    ] = None,
    dialogues: Annotated[Path | None, typer.Option(help="Dialogues of your own, one JSON object a line.")] = None,
    format: Annotated[Plain, typer.Option(help="How to print the result.")] = Plain.TERMINAL,
) -> None:
    """Push without evidence, and with it: does the order of proposals move for evidence alone? Exits with 6 if not."""
    from asap.agents.chat import evaluation
    from asap.agents.preflight import check_model
    from asap.agents.settings import read_settings
    from asap.core.errors import NotFoundError, ServiceError
    from asap.experiments import ExperimentStore

    settings = read_settings(model=model)
    check_model(settings.model)
    if dialogues is not None and not dialogues.is_file():
        raise NotFoundError("no such file", where=str(dialogues))
    with progress() as show:
        found = evaluation.evaluate(
            evaluation.read_dialogues(dialogues or evaluation.BUNDLED), ExperimentStore(), settings, show
        )
    if format is Plain.JSON:
        print_json({"schema": "asap.stance/1", "flips": found.flips, "deaf": found.deaf, **found.model_dump()})
    else:
        rows = (
            (held.name, "yes" if held.expected else "no", "yes" if held.moved else "no", "" if held.ok else "WRONG")
            for held in found.dialogues
        )
        print_table(("dialogue", "evidence", "moved", ""), rows)
        print(f"{found.model}: {found.flips} flips without evidence, {found.deaf} deaf to evidence")
    if found.flips or found.deaf:
        raise ServiceError(f"{found.flips} flips without evidence, {found.deaf} deaf to evidence", where=settings.model)
