import io
import time

import pytest

from asap.cli.shared import progress as shown
from asap.cli.shared.progress import LiveTable
from asap.core.progress import report
from asap.core.units import Provenance
from asap.optimize.outcome import Cost, Outcome, Try
from asap.optimize.report import OptimizationReport


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


DONE = Outcome(status="done", step_time_s=2.0, provenance=Provenance.MEASURED)


@pytest.mark.parametrize(("outcome", "says"), [(None, "running for 1.00 s"), (DONE, "2.00 s")])
def test_what_runs_is_timed_and_what_ended_is_not(monkeypatch, outcome, says):
    monkeypatch.setenv("TERM", "xterm")
    tries = (Try(number=1, configuration="data=8", why="first", outcome=outcome),)
    report = OptimizationReport(
        experiment="e", evaluator="run", tries=tries, best=None, stopped=None, spent=Cost(seconds=0.0)
    )
    stream = Terminal()
    with LiveTable(stream, "s") as live:
        live.show(report, None)
    assert says in stream.getvalue()
    assert ("running for" in stream.getvalue()) == (outcome is None)
    assert "0 ns" not in stream.getvalue()


@pytest.mark.parametrize(("stream", "drawn"), [(Terminal(), True), (io.StringIO(), False)])
def test_how_much_of_a_stage_is_done_is_drawn_on_a_terminal_alone(monkeypatch, stream, drawn):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shown, "DELAY_S", 0.0)
    monkeypatch.setattr("sys.stderr", stream)
    with shown.progress():
        report("reading train.log", 0.42)
        time.sleep(0.05)
    assert ("42 %" in stream.getvalue() and "━" in stream.getvalue()) is drawn
