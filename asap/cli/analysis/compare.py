"""``asap compare``: two runs side by side."""

from typing import Annotated

import typer

from asap.cli.shared.completion import experiments
from asap.cli.shared.output import Plain, console, print_json
from asap.cli.shared.progress import progress

Run = Annotated[str, typer.Argument(help="An experiment ID or a profile.", autocompletion=experiments)]


def compare(
    before: Run,
    after: Run,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of operations to print.")] = 20,
    format: Annotated[Plain, typer.Option(help="Output format.")] = Plain.TERMINAL,
) -> None:
    """Compare two runs, and a prediction with what came of it. Shows plan, KPIs, and operations matched by name and
    shape."""
    from asap.experiments import ExperimentStore
    from asap.reports.comparison import compare_studies
    from asap.study.open_study import open_study

    store = ExperimentStore()
    with progress() as show:
        found = compare_studies(open_study(before, store, progress=show), open_study(after, store, progress=show))
    if format is Plain.JSON:
        print_json(found)
        return
    from asap.reports.comparison.terminal import print_comparison

    print_comparison(found, console(), top)
