"""The picture of the README: the report of a bundled experiment, as a terminal shows it."""

import re
from io import StringIO

from documentation.pages import ROOT

PICTURE = ROOT / "docs" / "analyze.svg"
EXPERIMENT = "llama-8b-tensor-16"
WIDTH = 150


def draw() -> str:
    """The picture as SVG, of an analysis in the home that the environment names."""
    from rich.console import Console

    from asap.agents.workflow.analyze import analyze
    from asap.experiments import ExperimentStore
    from asap.reports.terminal import print_analysis

    analysis = analyze(EXPERIMENT, store=ExperimentStore(), session="example").analysis
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, highlight=False, emoji=False)
    print_analysis(analysis, console)
    picture = console.export_svg(title=f"asap analyze {EXPERIMENT}", unique_id="asap")
    return re.sub(r"[ \t]+$", "", picture, flags=re.M)
