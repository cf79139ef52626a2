import pytest

from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.core.units import Provenance
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.from_architecture import Measured, predict

PLANS = [Plan.parse(f"replica={64 // (2 * n)} model={n} stage=2 microbatches=16 remat=full") for n in (1, 2, 4, 8)]


def test_the_interval_contains_the_point(decoder, workload, h100):
    for found in predict(PLANS, decoder, workload, h100):
        for quantity in (found.step_time, found.tokens_per_second, found.mfu):
            assert quantity.low
            assert quantity.high
            assert quantity.low < quantity.value < quantity.high
            assert quantity.provenance is Provenance.MODELLED


def test_parts_add_up_to_the_step(decoder, workload, h100):
    for found in predict(PLANS, decoder, workload, h100):
        assert sum(part.exposed_s for part in found.parts) == pytest.approx(found.step_time.value)
        assert {part.axis for part in found.parts} >= {"stage"}


def test_tokens_and_time_agree(decoder, workload, h100):
    found = predict(PLANS[0], decoder, workload, h100)[0]
    assert found.step_time.value * found.tokens_per_second.value == pytest.approx(512 * 4096)


def test_a_measured_run_is_predicted_as_measured(decoder, workload, h100):
    found = predict(PLANS, decoder, workload, h100, baseline=Measured(PLANS[1], 12.5))
    same = found[1]
    assert same.step_time.value == pytest.approx(12.5)
    assert same.relative_step_time.value == pytest.approx(1.0)
    assert same.step_time.high == pytest.approx(12.5, rel=0.05)
    assert same.method == "anchored_architecture"


def test_relative_time_refers_to_the_incumbent(decoder, workload, h100):
    found = predict(PLANS, decoder, workload, h100, incumbent=PLANS[0])
    assert found[0].relative_step_time.value == pytest.approx(1.0)
    ratio = found[1].step_time.value / found[0].step_time.value
    assert found[1].relative_step_time.value == pytest.approx(ratio)


@pytest.mark.parametrize("field", ["global_batch", "sequence_length"])
def test_what_is_missing_is_named(field, decoder, workload, h100):
    with pytest.raises(InsufficientEvidenceError, match=field):
        predict(PLANS, decoder, workload.model_copy(update={field: None}), h100)


def test_no_architecture_is_a_refusal(workload, h100):
    with pytest.raises(InsufficientEvidenceError, match="architecture"):
        predict(PLANS, None, workload, h100)
    with pytest.raises(InsufficientEvidenceError, match="layers"):
        predict(PLANS, Architecture(name="half"), Workload(global_batch=1, sequence_length=1), h100)


def test_a_plan_for_other_hardware_is_refused(decoder, workload, h100):
    with pytest.raises(PlanError, match="32 devices, not 64"):
        predict(Plan.parse("data=32"), decoder, workload, h100)


def test_an_unsaid_policy_is_noted(decoder, workload, h100):
    found = predict(Plan.parse("data=64"), decoder, workload, h100)[0]
    assert any("least that fits" in note for note in found.notes)


@pytest.mark.parametrize("off", [0.9, 1.05, 3.0])
def test_the_plan_that_was_measured_is_predicted_as_measured(off, decoder, workload, h100):
    workload = workload.model_copy(update={"sequence_parallel": False})
    plan, other = Plan.parse("data=64 remat=full"), Plan.parse("data=16 model=4 remat=full")
    modelled = [found.step_time.value for found in predict([plan, other], decoder, workload, h100) if found.step_time]
    measured = off * modelled[0]
    ran, moved = predict([plan, other], decoder, workload, h100, baseline=Measured(plan, measured))
    assert ran.step_time.value == pytest.approx(measured)
    assert min(1.0, off) < moved.step_time.value / modelled[1] < max(1.0, off)
    assert moved.relative_step_time.value == pytest.approx(moved.step_time.value / measured)


def test_the_two_distances_are_two_fields(decoder, workload, h100):
    alone = predict(PLANS[2], decoder, workload, h100)[0]
    assert alone.region_distance is not None
    assert alone.doublings is None
    assert predict(PLANS[2], decoder, workload, h100, incumbent=PLANS[0])[0].doublings == 2
