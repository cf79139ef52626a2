import math

import pytest

from asap.experiments import ExperimentStore
from asap.profiles import Profile
from asap.study.open_study import open_study
from tests.cases import cases

PAPER = ("paper-v5e-256", "paper-v5p-512", "paper-v6e-16")


@pytest.fixture
def store(tmp_path):
    return ExperimentStore(tmp_path)


def facts(store: ExperimentStore, experiment_id: str) -> Profile:
    path = store.resolve(store.get(experiment_id)).facts
    return Profile.model_validate_json(path.read_text())


@pytest.mark.parametrize("experiment_id", PAPER)
def test_facts_are_stated_and_agree_with_the_record(store, experiment_id):
    experiment, profile = store.get(experiment_id), facts(store, experiment_id)
    assert profile.stated
    assert experiment.model is None
    assert experiment.hardware.topology is not None
    assert experiment.plan.devices == math.prod(experiment.hardware.topology) == profile.devices
    assert len(profile.operations) == 5
    assert profile.peak_hbm_bytes is None


@pytest.mark.parametrize("experiment_id", PAPER)
def test_nothing_of_the_outcome_is_in_the_record(store, experiment_id):
    record = store.get(experiment_id).model_dump_json()
    stated = facts(store, experiment_id).model_dump_json()
    for word in ("expert_ici", "outcome", "proposal", "matched", "throughput", "bottleneck", "history"):
        assert word not in (record + stated).lower()


@cases("experiment_id, step_time, duty_cycle, communication")
def test_kpis_are_as_printed(store, experiment_id, step_time, duty_cycle, communication):
    kpis = facts(store, experiment_id).kpis
    assert (kpis.step_time_s, kpis.duty_cycle, kpis.communication) == (step_time, duty_cycle, communication)


def test_shares_of_v5e_are_fractions_and_say_so(store):
    profile = facts(store, "paper-v5e-256")
    printed = (0.017, 0.009, 0.008, 0.007, 0.007)
    assert tuple(math.floor(op.fraction * 1000) / 1000 for op in profile.operations) == printed
    for operation in profile.operations:
        assert operation.time_s == pytest.approx(operation.fraction * 7.35469, rel=1e-5)
    assert any("fractions printed with a percent sign" in warning for warning in profile.warnings)
    assert all(operation.is_collective for operation in profile.operations)


def test_shares_of_v6e_follow_from_the_stated_times(store):
    profile = facts(store, "paper-v6e-16")
    for operation in profile.operations:
        assert operation.time_s == pytest.approx(operation.fraction * 2.5165, abs=0.00005 * 2.5165)


def test_calls_without_a_bound_are_opaque_and_completions_wait(store):
    operations = facts(store, "paper-v5p-512").operations
    assert [op.opaque for op in operations] == [True, False, True, False, False]
    assert [op.collective_wait for op in operations] == [False, True, False, False, False]
    assert all(op.collective is None for op in operations)


def test_both_readings_of_v5p_512_are_noted(store):
    note = next(warning for warning in open_study("paper-v5p-512", store).warnings if "v5p-512" in warning)
    assert "256 chips" in note
    assert "8x8x8 decides: 512 chips" in note
