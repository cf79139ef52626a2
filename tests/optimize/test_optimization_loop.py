import io
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from asap.core.errors import BadInputError, UsageError
from asap.core.units import Provenance
from asap.optimize.loop import optimize
from asap.optimize.outcome import Code, Cost, Outcome, Suggestion, Try, feedback
from asap.optimize.report import OptimizationReport
from asap.optimize.request import Budget
from asap.optimize.session import Session
from asap.optimize.stopping import Machine, StoppingRule
from asap.optimize.table import print_report
from asap.sharding_memory import Kind, Worklog, verify_session
from tests.cases import cases


class Counting:
    """An evaluator that takes its answers from a list, and interrupts where there is ``None``."""

    def __init__(self, *answers: Outcome | None):
        self.answers, self.places, self.left = list(answers), [], []

    def evaluate(self, configuration, place, seconds=math.inf):
        self.places.append(place.name)
        self.left.append(seconds)
        answer = self.answers.pop(0)
        if answer is None:
            raise KeyboardInterrupt
        return answer


class InPairs:
    """An evaluator of two at once, which is interrupted from so many pairs on."""

    at_once = 2

    def __init__(self, most: int = 9):
        self.asked, self.most = [], most

    def evaluate_all(self, configurations, seconds=math.inf):
        if len(self.asked) == self.most:
            raise KeyboardInterrupt
        self.asked.append(list(configurations))
        return [took(10 - int(each)) for each in configurations]


class InTurn:
    """Proposes ``1``, ``2``, …, with an expected saving."""

    def __init__(self, saving: float | None = 0.5, most: int = 9):
        self.saving, self.most = saving, most

    def propose(self, tries):
        number = len(tries) + 1
        return Suggestion(configuration=str(number), why="next", saving=self.saving) if number <= self.most else None


def took(seconds: float, wall: float = 36.0) -> Outcome:
    return Outcome(status="done", step_time_s=seconds, provenance=Provenance.MEASURED, seconds=wall)


def failed(code: Code) -> Outcome:
    return Outcome(status="failed", provenance=Provenance.MEASURED, feedback=(feedback(code),), seconds=1.0)


def test_it_ends_with_the_budget_and_everything_is_on_record(home):
    session = Session.start("s", {"of": "tests"})
    stopped = optimize(session, InTurn(), Counting(took(3), took(2), took(4)), StoppingRule(evaluations=3))
    assert stopped.reason == "budget"
    again = Session.resume("s")
    assert again.tries == session.tries
    assert again.stopped == stopped
    assert again.settings == {"of": "tests"}
    assert verify_session("s").ok


def test_an_interrupted_try_is_lost_and_the_session_goes_on(home):
    session = Session.start("s", {})
    stopped = optimize(session, InTurn(), Counting(took(3), None), StoppingRule(evaluations=5))
    assert stopped.reason == "interrupted"
    resumed = Session.resume("s")
    assert [each.outcome.status for each in resumed.tries if each.outcome] == ["done", "lost"]
    assert optimize(resumed, InTurn(most=3), Counting(took(1)), StoppingRule()).reason == "nothing_left"


def test_a_try_without_an_outcome_is_finished_in_its_own_place(home):
    session = Session.start("s", {})
    session.begin(Suggestion(configuration="1", why="first"))
    resumed, evaluator = Session.resume("s"), Counting(took(3), took(2))
    optimize(resumed, InTurn(most=2), evaluator, StoppingRule())
    assert evaluator.places == ["1", "2"]
    assert [each.configuration for each in resumed.tries] == ["1", "2"]


def test_several_are_evaluated_at_once_within_the_budget(home):
    session, evaluator = Session.start("s", {}), InPairs()
    assert optimize(session, InTurn(), evaluator, StoppingRule(evaluations=3)).reason == "budget"
    assert evaluator.asked == [["1", "2"], ["3"]]
    assert [each.outcome.step_time_s for each in Session.resume("s").tries if each.outcome] == [9, 8, 7]


def test_an_interrupt_loses_all_that_were_under_way(home):
    session = Session.start("s", {})
    assert optimize(session, InTurn(), InPairs(most=1), StoppingRule()).reason == "interrupted"
    assert [each.outcome.status for each in session.tries if each.outcome] == ["done", "done", "lost", "lost"]


class Apart(Counting):
    """Two at once: the first waits for the second to have ended."""

    parallel = 2

    def __init__(self):
        super().__init__()
        self.second, self.interrupts = threading.Event(), 0

    def evaluate(self, configuration, place, seconds=math.inf):
        self.places.append(place.name)
        if configuration == "2":
            self.second.set()
        assert self.second.wait(20)
        return took(10 - int(configuration))

    def interrupt(self):
        self.interrupts += 1


def test_runs_at_once_are_each_on_record_and_none_beyond_the_budget(home):
    session, evaluator = Session.start("s", {}), Apart()
    session.begin(Suggestion(configuration="1", why="cut off by a kill"))
    assert optimize(session, InTurn(), evaluator, StoppingRule(evaluations=4)).reason == "budget"
    assert sorted(evaluator.places) == ["1", "2", "3", "4"]
    assert [each.outcome.step_time_s for each in Session.resume("s").tries if each.outcome] == [9, 8, 7, 6]


def test_nothing_is_spent_where_it_cannot_be_written_down(home):
    session, evaluator = Session.start("s", {}), Counting()
    path = home / "sessions" / "s.jsonl"
    path.write_bytes(path.read_bytes().replace(b"settings", b"sittings"))
    with pytest.raises(BadInputError):
        optimize(Session(Worklog("s"), {}, []), InTurn(), evaluator, StoppingRule())
    assert evaluator.places == []
    assert session.tries == []


def test_a_budget_of_time_is_what_an_evaluation_has_left(home):
    session, evaluator = Session.start("s", {}), Counting(took(3, wall=40.0), took(2, wall=30.0), took(1, wall=50.0))
    stopped = optimize(session, InTurn(), evaluator, StoppingRule(seconds=110.0))
    assert evaluator.left == [110.0, 70.0, 40.0]
    assert stopped.statement == "The budget of 110 s is spent."


def test_a_session_of_another_kind_is_refused(home):
    Worklog("other").append(Kind.NOTE, {"event": "opened"})
    with pytest.raises(BadInputError, match="is not an optimization session"):
        Session.resume("other")


@cases("saving, to_go, reason")
def test_it_ends_when_the_next_costs_more_than_it_saves(home, saving, to_go, reason):
    rule = StoppingRule(evaluations=3, steps_to_go=to_go, training_chips=8, machine=Machine(8, 2.0, "USD"))
    session = Session.start("s", {})
    assert optimize(session, InTurn(saving), Counting(*[took(1.0)] * 3), rule).reason == reason
    first = session.tries[0].cost
    assert (first.chip_hours, first.money) == (0.08, 0.16)


def test_it_ends_when_tries_fail_alike(home):
    answers = [took(1.0), failed(Code.CRASHED), failed(Code.NO_STEP_TIME), failed(Code.NO_STEP_TIME), took(1.0)]
    session = Session.start("s", {})
    stopped = optimize(session, InTurn(), Counting(*answers), StoppingRule(evaluations=9))
    assert stopped.reason == "failing"
    assert "no step time" in stopped.statement
    assert len(session.tries) == 4


@given(st.integers(1, 999), st.sampled_from(["", "s", "m", "h"]))
def test_a_budget_is_a_number_of_tries_or_a_time(count, unit):
    found = Budget.parse(f"{count}{unit}")
    assert found.evaluations == (None if unit else count)
    assert found.seconds == (count * {"s": 1, "m": 60, "h": 3600}[unit] if unit else None)


@pytest.mark.parametrize("text", ["", "0", "-3", "1.5", "8 runs", "٣", "1e9", "inf", "0m"])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(UsageError, match="is not a budget"):
        Budget.parse(text)


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
