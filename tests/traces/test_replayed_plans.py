"""Plans of a recorded run: the third way of predicting, beside the architecture and the KPIs."""

from dataclasses import replace

import pytest
from made_runs import Run, simulate, study_of, unexplained, write
from test_other_runs import MODEL, WORK

from asap.plans import Plan
from asap.prediction.predict_study import candidate_plans, expect

RAN = Plan.parse("replica=8 remat=none microbatches=1")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replayed")
    ranks = simulate(Run(layers=8, kernel=90_000, transfer=30_000, loading=0, slow=(1.0,) * 8))
    said = {"hardware": {"name": "a100-80gb", "devices": 8}, "profile_path": str(write(folder / "run", ranks))}
    return study_of(folder / "experiments", model=MODEL, workload=WORK, plan=RAN, **said)


@pytest.fixture(scope="module")
def predictions(study):
    return expect(study, [RAN, *candidate_plans(study)])


def test_all_plans_are_predicted_by_the_replay(predictions):
    assert len(predictions) > 5
    for found in predictions:
        assert found.method == "trace_replay"
        assert 0 < found.step_time.low < found.step_time.value < found.step_time.high
        assert sum(part.exposed_s for part in found.parts) == pytest.approx(found.step_time.value)
        assert any("as traced" in note for note in found.notes)


def test_the_plan_that_ran_takes_what_was_measured_and_rates_follow_the_step(study, predictions):
    assert predictions[0].step_time.value == pytest.approx(study.profile.kpis.step_time_s, rel=0.01)
    assert predictions[0].relative_step_time.value == pytest.approx(1, rel=0.01)
    for found in predictions:
        assert found.tokens_per_second.value * found.step_time.value == pytest.approx(16 * 2048)
        assert found.tokens_per_second.low == pytest.approx(16 * 2048 / found.step_time.high)


def test_intervals_are_no_narrower_than_those_of_the_architecture(study, predictions):
    anchored = expect(replace(study, recording=None), [found.plan for found in predictions])
    assert {found.method for found in anchored} == {"anchored_architecture"}
    for replayed, modelled in zip(predictions, anchored, strict=True):
        above = [found.step_time.high / found.step_time.value for found in (replayed, modelled)]
        assert replayed.plan == RAN or above[0] >= above[1]


def test_a_recording_that_is_not_explained_predicts_nothing(study, tmp_path):
    doubtful = replace(study, recording=write(tmp_path, unexplained()))
    (found,) = expect(doubtful, [RAN])
    assert found.method == "anchored_architecture"
