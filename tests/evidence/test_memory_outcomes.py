"""What came of one plan moves the HBM of all plans of the run, and is taken back with it."""

import pytest

from asap.answers.inquiry import Inquiry
from asap.evidence.effect import apply_outcomes
from asap.evidence.fact import Claim, StatedFact
from asap.evidence.memory_judgement import judge_memory, judge_study
from asap.experiments import Experiment
from asap.experiments.experiment import refer_to_hardware
from asap.experiments.observed import Ending, Observed
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.prediction.memory_outcomes import SURPRISING
from asap.prediction.predict_study import expect
from asap.prediction.prediction import MemoryPrediction
from asap.proposals.ranked_candidates import rank_candidates
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
    return apply_outcomes(study, [StatedFact(claim=claim, plan=plan, value=value, words="as told")])


def odds(memory: MemoryPrediction | None) -> float:
    return 1.0 if memory is None or memory.probability_fits is None else memory.probability_fits


def test_what_was_told_in_answers_moves_the_hbm_of_all_plans_until_it_is_taken_back(study: Study):
    run = Inquiry(study)
    before = {plan: odds(run.predictions([plan])[0].memory) for plan in (NOW, LESS, MORE)}
    for claim, fits in ((Claim.FITS, True), (Claim.OUT_OF_MEMORY, False)):
        (fact,) = run.record([StatedFact(claim=claim, plan=NOW, words="as told")])
        told = {plan: run.predictions([plan])[0].memory for plan in (NOW, LESS, MORE)}
        assert told[NOW] is not None
        assert (told[NOW].fits, told[NOW].verdict) == (fits, "fits" if fits else "does not fit")
        assert odds(told[MORE]) >= before[MORE] if fits else odds(told[LESS]) < before[LESS]
        run.retract([fact])
        assert {plan: odds(run.predictions([plan])[0].memory) for plan in before} == before


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
    assert (moved.total.high or 0.0) / (moved.total.low or 1.0) < (other.total.high or 0.0) / (other.total.low or 1.0)
    assert (rank_candidates(seen, {}).smallest is None) == memory_of(seen, NOW).fits


SMALL = Plan.parse("data=8 microbatches=4 remat=full")


def died(study: Study, **of_error: float | bool) -> Study:
    """The run that is all but sure to fit, with a log in which it died."""
    ending = Ending(kind="out_of_memory", capacity_bytes=79.1 * GIB, **of_error)
    observed = Observed(file="train.log", ending=ending)
    return study_of(study.experiment.model_copy(update={"plan": SMALL, "observed": observed}))


@pytest.mark.parametrize(("of_error", "cause", "is_one"), [
    ({"in_use_bytes": 30.0 * GIB, "free_bytes": 1.0 * GIB}, "other processes", True),
    ({"in_use_bytes": 78.0 * GIB, "free_bytes": 1.1 * GIB}, "other processes", False),
    ({"before_first_step": True}, "saving", False), ({"before_first_step": False}, "saving", True),
])  # fmt: skip
def test_a_run_that_dies_though_it_is_all_but_sure_to_fit_is_the_finding(study: Study, of_error, cause, is_one):
    alone = study_of(study.experiment.model_copy(update={"plan": SMALL}))
    assert odds(memory_of(alone, SMALL)) > SURPRISING
    found, after = judge_study(died(study, **of_error)), memory_of(died(study, **of_error), SMALL)
    assert found.is_finding
    assert (cause in [one.name for one in found.causes]) == is_one
    assert (after.fits, after.total) == (False, memory_of(alone, SMALL).total)
    before, other = memory_of(alone, LESS), memory_of(died(study, **of_error), LESS)
    assert (other.total, odds(other) < odds(before)) == (before.total, True)


LARGE = Plan.parse("replica=8 microbatches=1 remat=none")


def test_a_run_that_runs_though_it_is_all_but_sure_not_to_fit_is_the_finding(study: Study):
    alone = study_of(study.experiment.model_copy(update={"plan": LARGE}))
    runs = told(alone, Claim.FITS, plan=LARGE)
    found, before, after = judge_study(runs), memory_of(alone, LARGE), memory_of(runs, LARGE)
    assert before.total.value > 1.5 * before.capacity_bytes
    assert (found.verdict, found.causes[0].name, found.advice[:48]) == (
        "ran", "sharded states", "Find out first why it needs less HBM than modell"
    )  # fmt: skip
    assert (after.fits, after.total) == (True, before.total)
    assert memory_of(runs, MORE).total == memory_of(alone, MORE).total
    assert odds(memory_of(runs, MORE)) > odds(memory_of(alone, MORE))
    assert judge_memory(told(alone, Claim.HBM_BYTES, 60.0 * GIB, plan=LARGE)) is None


def test_a_run_that_dies_near_the_limit_is_no_finding(study: Study):
    told_of = told(study_of(study.experiment.model_copy(update={"plan": MORE})), Claim.OUT_OF_MEMORY, plan=MORE)
    assert odds(memory_of(study, MORE)) < SURPRISING
    assert judge_memory(told_of) is None
