"""A team's own runs: read, kept, used by predictions, and forgotten."""

import json
from pathlib import Path

import pytest

from asap.calibration.dataset.rows import read_rows
from asap.core.units import Provenance
from asap.experiments import ExperimentStore
from asap.optimize.outcome import Cost, Outcome, Suggestion
from asap.optimize.request import Budget, Request
from asap.optimize.session import Session
from tests.cases import cases
from tests.homes import home

__all__ = ["home"]
MEASUREMENTS = Path(__file__).parents[1] / "data" / "measurements"
MODELS = str(MEASUREMENTS / "models.jsonl")
RUN = "llama-8b-tensor-16"
PLANS = ("model=16 replica=16 remat=full", "data=256 remat=full", "data=64 model=4 remat=full")


@pytest.fixture
def ran(home):
    """A session that ran three plans, each a tenth slower than predicted."""
    experiment, budget = ExperimentStore().get(RUN), Budget(evaluations=3)
    request = Request(experiment=experiment, evaluate="run", budget=budget, command="x {overrides}")
    session = Session.start("ran", request.model_dump(mode="json"))
    for number, (plan, modelled) in enumerate(zip(PLANS, _modelled(request, PLANS), strict=True), 1):
        session.begin(Suggestion(configuration=plan, why=""))
        measured = Outcome(status="done", step_time_s=1.1 * modelled, provenance=Provenance.MEASURED)
        session.end(number, measured, Cost(seconds=1.0))
    return session


def _modelled(request, plans):
    from asap.prediction.from_architecture import predict
    from asap.study.study import read_plan

    of, slice_ = request.experiment, request.study.slice
    found = predict([read_plan(request.study, plan) for plan in plans], of.model, of.workload, slice_)
    return [each.step_time.value for each in found if each.step_time]


def predicted(run_command, plan="data=32 model=8 remat=full"):
    done = run_command("predict", RUN, "--plan", plan, "--format", "json")
    (found,) = json.loads(done.out)["predictions"]
    return found


def test_own_runs_correct_and_narrow_predictions_until_they_are_forgotten(run_command, ran):
    before = predicted(run_command)
    assert run_command("accuracy", "calibrate", "--with", "ran").code == 0
    after = predicted(run_command)
    step, narrowed = before["step_time"], after["step_time"]
    assert step["value"] < narrowed["value"] < 1.1 * step["value"]
    assert narrowed["high"] / narrowed["low"] < step["high"] / step["low"]
    assert "narrowed by 3 of your runs" in narrowed["source"]
    assert any("your runs: 3 of this chip and stack" in note for note in after["notes"])
    assert "Your runs: 3 of this chip and stack" in " ".join(run_command("analyze", RUN).out.split())
    assert after["relative_step_time"] == before["relative_step_time"]
    assert len(json.loads(run_command("accuracy", "calibrate", "--format", "json").out)["runs"]) == 3
    assert run_command("accuracy", "calibrate", "--forget").code == 0
    assert predicted(run_command) == before
    assert run_command("accuracy", "calibrate").code == 3


def test_the_same_place_read_again_replaces_its_runs(run_command, ran):
    run_command("accuracy", "calibrate", "--with", "ran")
    once = run_command("accuracy", "calibrate", "--format", "json").out
    run_command("accuracy", "calibrate", "--with", "ran")
    assert run_command("accuracy", "calibrate", "--format", "json").out == once


def test_what_is_recorded_as_a_precedent_counts_as_own_runs(run_command, ran):
    ran.begin(Suggestion(configuration=str(ExperimentStore().get(RUN).plan), why=""))
    ran.end(4, Outcome(status="done", step_time_s=99.0, provenance=Provenance.MEASURED), Cost(seconds=1.0))
    assert run_command("optimize", "record", "ran").code == 0
    assert run_command("accuracy", "calibrate", "--with", "history").code == 0
    origins = {
        run["origin"] for run in json.loads(run_command("accuracy", "calibrate", "--format", "json").out)["runs"]
    }
    assert origins == {"history"}


def test_runs_of_another_stack_change_nothing(run_command, tmp_path):
    rows = [row for row in read_rows(MEASUREMENTS / "kept_out.jsonl.gz") if row["source_key"] == "torchprime"]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps({key: row[key] for key in row if key != "trust"}) for row in rows[:4]))
    before = predicted(run_command)
    done = run_command("accuracy", "calibrate", "--with", str(path), "--models", MODELS)
    assert done.code == 0
    assert "v6e, jax" in done.out
    assert predicted(run_command) == before


def test_runs_that_another_calibration_predicted_are_named_and_not_used(run_command, ran, home):
    run_command("accuracy", "calibrate", "--with", "ran")
    before, path = predicted(run_command), home / "own_runs.json"
    path.write_text(path.read_text().replace('"calibrated": "', '"calibrated": "1'))
    after = predicted(run_command)
    assert after["step_time"]["value"] < before["step_time"]["value"]
    assert any("another calibration" in note for note in after["notes"])


@cases("arguments, code, says")
def test_what_cannot_be_read_is_said_in_one_line(run_command, tmp_path, arguments, code, says):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "x"}\n')
    places = {"FILE": str(path), "MODELS": MODELS}
    done = run_command("accuracy", "calibrate", *(places.get(word, word) for word in arguments))
    assert (done.code, done.err.count("\n")) == (code, 1)
    assert says in done.err


def test_a_broken_file_of_own_runs_says_how_to_remove_it(run_command, home):
    home.mkdir(parents=True)
    (home / "own_runs.json").write_text("{")
    done = run_command("predict", RUN, "--plan", "data=256 remat=full")
    assert done.code == 0
    assert "`asap accuracy calibrate --forget` removes it" in done.err
    assert run_command("accuracy", "calibrate").code == 4
