import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.experiments import Experiment, ExperimentStore
from asap.plans import Plan
from asap.plans.validity import Constraints
from asap.profiles import Kpis, Operation, Profile
from asap.reports.comparison import compare_studies
from asap.reports.comparison.operations import compare_operations
from asap.study.open_study import open_study
from asap.study.study import Study, study_of


def operation(name, time, shape="f32[8]"):
    return Operation(name=name, category="fusion", fraction=time, time_s=time, shape=shape)


def run(id, plan, step, *operations):
    profile = Profile(source=id, operations=operations, kpis=Kpis(step_time_s=step))
    return Study(Experiment(id=id, plan=Plan.parse(plan)), profile, None, Constraints(devices_per_slice=8, slices=1))


def test_operations_are_matched_by_name_and_shape_then_without_their_number():
    before = [operation("fusion.1", 0.5), operation("fusion.2", 0.2, "f32[9]"), operation("copy.1", 0.1)]
    after = [operation("fusion.1", 0.3), operation("fusion.7", 0.25, "f32[9]"), operation("all-reduce.3", 0.1)]
    found = {change.name: change for change in compare_operations(before, after, True).operations}
    assert found["fusion.1"].change == "faster"
    assert (found["fusion.2"].change, found["fusion.2"].renamed) == ("slower", "fusion.7")
    assert (found["copy.1"].change, found["all-reduce.3"].change) == ("gone", "new")


@given(st.lists(st.tuples(st.sampled_from(["a.1", "a.2", "b.1", "c"]), st.floats(0.01, 1)), max_size=8))
def test_a_run_compared_with_itself_has_not_changed(parts):
    operations = [operation(name, time) for name, time in parts]
    found = compare_operations(operations, operations, True).operations
    assert [change.change for change in found] == ["same"] * len(operations)


def test_a_prediction_is_compared_with_what_was_measured():
    before = run("one", "data=4 model=2", 1.0, operation("fusion", 0.6), operation("all-reduce.1", 0.4))
    after = run("two", "data=2 model=4", 0.9, operation("fusion", 0.6), operation("all-reduce.1", 0.3))
    found = compare_studies(before, after)
    assert found.speedup == pytest.approx(1 / 0.9)
    assert found.prediction.measured == pytest.approx(0.9)
    assert found.prediction.inside
    assert "tensor parallelism from 2 to 4" in found.changes


def test_runs_that_differ_in_more_than_the_plan_say_so(tmp_path):
    store = ExperimentStore(tmp_path)
    found = compare_studies(open_study("cpu-8dev", store), open_study("paper-v6e-16", store))
    assert found.prediction is None
    assert any("another number of tokens" in note for note in found.notes)
    assert any("stated profile" in note for note in found.notes)


def test_runs_that_differ_beside_the_plan_are_compared_by_the_model(tmp_path):
    before = open_study("llama-8b-tensor-16", ExperimentStore(tmp_path))
    workload = before.experiment.workload.model_copy(update={"precision": "int8"})
    found = compare_studies(before, study_of(before.experiment.model_copy(update={"workload": workload})))
    assert found.prediction.predicted.value < 1
    assert any("precision changed as well" in note for note in found.notes)
