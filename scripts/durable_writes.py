"""What ``scripts/measure torture`` writes while the writer is killed, and how it reads back what is stored."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.own_runs import Reading, add_own_runs
from asap.core.files import home, write_output
from asap.experiments import Experiment, ExperimentStore
from asap.history.files import add_records, load_records
from asap.history.record import HistoryRecord
from asap.knowledge import ingest, list_ingested, search_knowledge
from asap.optimize.evaluators.run.command import Command
from asap.optimize.evaluators.run.evaluator import RunEvaluator, RunLimits
from asap.optimize.loop import optimize
from asap.optimize.outcome import Suggestion, Try
from asap.optimize.session import Session
from asap.optimize.stopping import StoppingRule
from asap.prediction.uncertainty.own_runs import load_own_runs
from asap.proposals.proposal import Overrides
from asap.sharding_memory import Kind, Worklog, read_session, verify_session
from asap.sharding_memory.worklog import session_path
from asap.study.open_study import open_study

STEPS_LOGGED = (
    'for step in $(seq 24); do echo "completed step: $step, seconds: 1.0, TFLOP/s/device: 1.0, loss: 9.1"; done'
)
"""Of a run as MaxText logs it."""

RECORD = (Path(__file__).parents[1] / "history_db" / "asap-paper.jsonl").read_text(encoding="utf-8").splitlines()[0]


def append(number: int) -> None:
    assert Worklog("tortured").append(Kind.NOTE, {"number": number, "text": "x" * (number % 5000)}) is not None


def appended() -> set[int]:
    assert verify_session("tortured").reason is None or verify_session("tortured").torn_bytes
    return {record.fields["number"] for record in read_session("tortured") if "number" in record.fields}


def history_record(number: int) -> HistoryRecord:
    return HistoryRecord.model_validate_json(RECORD).model_copy(
        update={"id": f"tortured-{number}", "other_changes": (f"number {number}",), "summary": f"Number {number}."}
    )


def _ingest(number: int) -> None:
    """A note, and the search that brings the index up to date."""
    note = home() / "note.md"
    note.write_text(f"# Tortured {number}\n\nNumber {number} of the tortured notes.\n", encoding="utf-8")
    ingest(note, f"tortured-{number}")
    search_knowledge(f"tortured number {number}")


def _ingested() -> set[int]:
    found = {int(one.name.removeprefix("tortured-")) for one in list_ingested()}
    assert {hit.note.citation.work for hit in search_knowledge("number of the tortured notes", 3)}
    return found


def _add(number: int) -> None:
    assert add_records([history_record(number)]).added


def _optimize(number: int) -> None:
    """Evaluate a configuration of that number with a real command; what a kill cut off is finished first."""
    began = session_path("tortured").exists()
    session = Session.resume("tortured") if began else Session.start("tortured", {})
    folder = session_path("tortured").parent
    command = Command(f"echo {{overrides}} >> starts; {STEPS_LOGGED}")
    evaluator = RunEvaluator(
        command, "tortured", lambda line: Overrides(stack="maxtext", text=line), None, RunLimits(), folder
    )
    optimize(session, _Numbered(number), evaluator, StoppingRule())


@dataclass(frozen=True)
class _Numbered:
    """Proposes one configuration, named by its number."""

    number: int

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        name = f"number={self.number}"
        return None if any(each.configuration == name for each in tries) else Suggestion(configuration=name, why="")


def _optimized() -> set[int]:
    """Configurations with an outcome on disk; none was run twice."""
    tries = Session.resume("tortured").tries
    outcomes = {each.configuration: each.outcome for each in tries}
    starts = (session_path("tortured").parent / "starts").read_text().splitlines()
    assert len(tries) == len(outcomes), "a configuration was tried again"
    assert len(starts) == len(set(starts)), "a try was paid for twice"
    assert outcomes.keys() >= set(starts)
    done = {name for name, outcome in outcomes.items() if outcome is not None}
    assert all(outcome is None or outcome.status == "done" for outcome in outcomes.values())
    assert done <= set(starts)
    return {int(name.removeprefix("number=")) for name in done}


def _calibrate(number: int) -> None:
    """A measured run, added to those on record."""
    study = open_study("llama-8b-tensor-16", ExperimentStore())
    experiment = study.experiment
    assert experiment.model is not None
    assert study.slice is not None
    assert study.plan is not None
    run = PublishedRun(
        id=str(number), source="tortured", group="tortured", chip="v5e", framework="maxtext", family="llama",
        architecture=experiment.model, workload=experiment.workload, hardware=study.slice, plan=study.plan,
        step_time=10.0, out_of_memory=False, fabric=None,
    )  # fmt: skip
    add_own_runs([Reading(f"tortured-{number}", (run,), Counter())])


def _calibrated() -> set[int]:
    found = load_own_runs()
    return {int(run.origin.removeprefix("tortured-")) for run in found.runs} if found else set()


def _report(number: int) -> None:
    """A page over the one before it."""
    write_output(home() / "page.html", f"{number}\n" * 200_000)


def _reported() -> set[int]:
    """All up to the one that is there, whole."""
    lines = (home() / "page.html").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 200_000, "half a page"
    assert len(set(lines)) == 1, "a page of two"
    return set(range(int(lines[0]) + 1))


KILLED: dict[str, tuple[float, Callable[[int], object], Callable[[], set[int]]]] = {
    "worklog": (0.2, append, appended),
    "history": (
        0.2,
        _add,
        lambda: {int(one.id.removeprefix("tortured-")) for one in load_records() if one.id.startswith("tortured-")},
    ),
    "experiments": (
        0.2,
        lambda number: ExperimentStore().add(Experiment(id=f"tortured-{number}")),
        lambda: {int(one.removeprefix("tortured-")) for one in ExperimentStore().ids() if one.startswith("tortured-")},
    ),
    "index": (0.05, _ingest, _ingested),
    "optimize": (0.15, _optimize, _optimized),
    "calibration": (0.1, _calibrate, _calibrated),
    "report": (0.1, _report, _reported),
}
"""What is written while the writer is killed: its share of the kills, a write of a number, and the stored ones."""
