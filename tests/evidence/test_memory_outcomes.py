"""What came of one plan moves the HBM of all plans of the run, and is taken back with it."""

from dataclasses import replace

import pytest

from asap.evidence.effect import with_outcomes
from asap.evidence.fact import Claim, StatedFact
from asap.experiments import Experiment
from asap.experiments.hardware import refer_to_hardware
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.prediction.prediction import MemoryPrediction
from asap.study.study import Study, study_of

GIB = 2.0**30
NOW = Plan.parse("data=8 microbatches=1 remat=selective")
LESS = Plan.parse("data=8 microbatches=2 remat=selective")
MORE = Plan.parse("replica=2 data=4 microbatches=1 remat=selective")


@pytest.fixture(scope="module")
def study() -> Study:
    work = Workload(
        global_batch=32, sequence_length=4096, precision="bf16", attention="flash", framework="Megatron-DeepSpeed"
    )
    hardware, _ = refer_to_hardware("a100-80gb-8")
    record = Experiment(id="run", model=find_architecture("llama2-7b"), workload=work, plan=NOW, hardware=hardware)
    return study_of(record)


def memory_of(study: Study, plan: Plan) -> MemoryPrediction:
    found = expect(study, [plan])[0].memory
    assert found is not None
    return found


def told(study: Study, claim: Claim, value: float | None = None, plan: Plan | None = NOW) -> Study:
    return with_outcomes(study, [StatedFact(claim=claim, plan=plan, value=value, words="as told")])


def odds(memory: MemoryPrediction) -> float:
    return 1.0 if memory.probability_fits is None else memory.probability_fits


def test_what_ran_fits_and_makes_larger_plans_likelier(study: Study):
    ran = told(study, Claim.FITS)
    assert memory_of(ran, NOW).fits
    assert memory_of(ran, NOW).verdict == "fits"
    assert odds(memory_of(ran, MORE)) >= odds(memory_of(study, MORE))


def test_what_died_does_not_fit_and_makes_smaller_plans_less_likely(study: Study):
    died = told(study, Claim.OUT_OF_MEMORY)
    assert not memory_of(died, NOW).fits
    assert memory_of(died, NOW).verdict == "does not fit"
    assert odds(memory_of(died, LESS)) < odds(memory_of(study, LESS))


def test_a_fact_without_a_plan_is_of_what_runs_now(study: Study):
    assert not memory_of(told(study, Claim.OUT_OF_MEMORY, plan=None), NOW).fits


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_peak_moves_all_plans_its_way_and_narrows_them(study: Study, factor: float):
    before, other = memory_of(study, NOW), memory_of(study, LESS)
    seen = told(study, Claim.HBM_BYTES, factor * before.total.value)
    assert memory_of(seen, NOW).total.value == pytest.approx(factor * before.total.value)
    parts = memory_of(seen, NOW).parts
    assert sum(part.size_bytes for part in parts) == pytest.approx(factor * before.total.value, rel=0.01)
    moved = memory_of(seen, LESS)
    assert (moved.total.value < other.total.value) == (factor < 1)
    assert other.total.high is not None
    assert other.total.low is not None
    assert moved.total.high is not None
    assert moved.total.low is not None
    assert moved.total.high / moved.total.low < other.total.high / other.total.low


def test_facts_that_are_taken_back_leave_nothing(study: Study):
    assert expect(with_outcomes(study, []), [NOW, LESS]) == expect(study, [NOW, LESS])
    assert replace(told(study, Claim.OUT_OF_MEMORY), outcomes=()) == study
