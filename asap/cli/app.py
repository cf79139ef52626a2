"""The commands and their groups."""

import typer

from asap.cli.analysis import analyze, chat, compare, report
from asap.cli.plans import map, optimize, predict, verify
from asap.cli.scores import backtest, calibrate, evaluate, ledger
from asap.cli.services import ci, serve
from asap.cli.sessions import cost, memory
from asap.cli.setup import config, doctor
from asap.cli.shared import output
from asap.cli.sources import experiments, history, knowledge, profile, resolve, trace

app = typer.Typer(
    name="asap",
    help="Find the bottleneck of an LLM training run, and propose sharding configurations with checked predictions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    rich_markup_mode=None,
)
app.command("analyze")(analyze.analyze)
app.command("report")(report.report)
app.command("chat")(chat.chat)
app.command("resolve")(resolve.resolve)
app.command("predict")(predict.predict)
app.command("backtest")(backtest.backtest)
app.command("calibrate")(calibrate.calibrate)
app.command("verify")(verify.verify)
app.command("compare")(compare.compare)
app.command("ledger")(ledger.ledger)
app.command("doctor")(doctor.doctor)
app.command("cost")(cost.cost)
app.add_typer(ci.app, name="ci")
app.add_typer(experiments.app, name="experiments")
app.add_typer(knowledge.app, name="knowledge")
app.add_typer(history.app, name="history")
app.add_typer(profile.app, name="profile")
app.add_typer(trace.app, name="trace")
app.add_typer(map.app, name="map")
app.add_typer(memory.app, name="memory")
app.add_typer(optimize.app, name="optimize")
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(config.app, name="config")
app.add_typer(serve.app, name="serve")


@app.callback()
def asap(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress and no warnings; errors only."),
    verbose: bool = typer.Option(False, "--verbose", help="Each stage on standard error, with its time."),
    debug: bool = typer.Option(False, "--debug", help="Show where an error comes from; also ASAP_DEBUG."),
) -> None:
    """Find the bottleneck of an LLM training run, and propose sharding configurations with checked predictions."""
    output.set_verbosity(output.verbosity_of(quiet, verbose))
    if debug:
        import os

        os.environ["ASAP_DEBUG"] = "1"
    if version:
        from asap import __version__

        print(f"asap {__version__}")
        raise typer.Exit
