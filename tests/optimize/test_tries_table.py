import io

from rich.console import Console

from asap.core.units import Provenance
from asap.optimize.outcome import Code, Cost, Outcome, Try, feedback
from asap.optimize.report import OptimizationReport
from asap.optimize.table import print_report


def _try(number, *codes, status="done"):
    said = tuple(feedback(code, {Code.OUT_OF_MEMORY: "out of device memory"}.get(code)) for code in codes)
    time = 1.0 if status == "done" else None
    outcome = Outcome(status=status, step_time_s=time, provenance=Provenance.MEASURED, feedback=said)
    return Try(number=number, configuration=f"data={number}", why="to see", outcome=outcome)


def _printed(*tries):
    console = Console(file=io.StringIO(), width=100)
    of = {"experiment": "mine", "evaluator": "run", "best": None, "stopped": None, "spent": Cost(seconds=1.0)}
    print_report(OptimizationReport(tries=tries, **of), console)
    return console.file.getvalue()


def test_what_several_tries_say_stands_once_below_the_table():
    once = "does not show its settings"
    text = _printed(_try(1), _try(2, Code.UNCHECKED), _try(3, Code.UNCHECKED))
    assert text.count(once) == 1
    assert "· 2, 3: its log does not show its settings" in text
    assert "· 2" not in _printed(_try(1), _try(2, Code.UNCHECKED))


def test_why_a_try_died_stands_beside_each():
    died = [_try(number, Code.OUT_OF_MEMORY, status="rejected") for number in (1, 2)]
    assert _printed(*died).count("out of device memory") == 2
