"""A measurement is judged before it is used: causes that are planted into the model's own runs are found."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from asap.core.units import Quantity
from asap.evidence import judgement
from asap.evidence.cause_words import sentence
from asap.evidence.judgement import Judgement, MeasuredRun, judge, judge_run
from asap.evidence.readings import CauseName, Run, predicted, readings
from asap.evidence.step_belief import Z_90
from asap.experiments import Experiment
from asap.experiments.create import MeasuredStep
from asap.experiments.experiment import refer_to_hardware
from asap.flags.review import causes_set
from asap.hardware import resolve_hardware
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.prediction.from_architecture import predict
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.prediction.uncertainty.step_interval import half_width, is_outside
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.study.study import Study, study_of
from tests.cases import cases

PLANTED: tuple[CauseName, ...] = ("network", "sequence", "slow device", "attention")
DRAWS = 8


def a_run(model: str, hardware: str, plan: str, batch: int, length: int, framework: str) -> Run:
    work = Workload(
        global_batch=batch, sequence_length=length, precision="bf16", attention="flash", framework=framework
    )
    architecture = find_architecture(model)
    assert architecture is not None
    return Run(Plan.parse(plan), architecture, work, resolve_hardware(hardware).slice)


RUNS = (
    a_run("llama3-8b", "h100-32", "data=32 microbatches=1 remat=selective", 32, 8192, "torchtitan"),
    a_run("llama2-7b", "a100-80gb-16", "replica=8 model=2 microbatches=4 remat=none", 128, 4096, "Megatron-LM"),
    a_run("llama3-70b", "h100-64", "data=8 model=8 microbatches=2 remat=full", 64, 4096, "NeMo"),
    a_run("llama3-8b", "h100-8", "data=8 microbatches=2 remat=full", 32, 8192, "torchtitan"),
)


@pytest.fixture(autouse=True, scope="module")
def remembered() -> Iterator[None]:
    """Each reading of a run is predicted once, for all that is drawn of it."""
    known: dict[str, Prediction | None] = {}

    def once(run: Run) -> Prediction | None:
        if (key := repr(run)) not in known:
            known[key] = predicted(run)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judgement, "predicted", once)
        yield


def modelled(run: Run) -> Prediction:
    (prediction,) = predict(run.plan, run.model, run.workload, run.hardware)
    return prediction


def drawn(prediction: Prediction, chance: random.Random) -> MeasuredRun:
    """What a log would show of a run, with the scatter that the model has of itself."""
    assert prediction.step_time is not None
    assert prediction.memory is not None

    def off(quantity: Quantity) -> float:
        return quantity.value * math.exp(chance.gauss(0.0, half_width(quantity) / Z_90))

    return MeasuredRun(off(prediction.step_time), peak_bytes=off(prediction.memory.total))


def planted(chance: random.Random) -> Iterator[tuple[CauseName, Judgement]]:
    """Judgements of runs with a planted cause whose steps lie outside of the interval."""
    for run in RUNS:
        now, known = modelled(run), list(readings(run))
        for name in PLANTED:
            variants = [each for each in known if each.cause == name]
            expected = {id(each): modelled(each.run) for each in variants}
            for variant in chance.choices(variants, [each.weight for each in variants], k=DRAWS) if variants else ():
                seen = drawn(expected[id(variant)], chance)
                assert now.step_time is not None
                if is_outside(seen.seconds, now.step_time) and (found := judge_run(run, seen)) and found.is_finding:
                    yield name, found


@pytest.mark.slow
def test_a_planted_cause_is_among_the_first_two():
    found = [one for seed in range(2) for one in planted(random.Random(seed))]
    right = [name in {cause.name for cause in judged.causes[:2]} for name, judged in found]
    assert len(found) >= 40
    assert sum(right) / len(found) >= 0.85


def test_without_a_planted_cause_there_is_no_alarm():
    chance = random.Random(7)
    expected = [(run, modelled(run)) for run in RUNS]
    judged = [judge_run(run, drawn(prediction, chance)) for run, prediction in expected for _ in range(100)]
    assert sum(one is not None and one.is_finding for one in judged) / len(judged) <= 0.05


def test_every_reading_of_a_run_that_does_not_say_its_recomputation_is_a_sentence():
    run = replace(RUNS[0], plan=RUNS[0].plan.model_copy(update={"remat": None}))
    assert not [text for each in readings(run) if "None" in (text := sentence(each, run))]


def study(seconds: float | None) -> Study:
    """The first run as a record, with a measured step."""
    run = RUNS[0]
    measured = MeasuredStep(seconds=seconds, source="a log") if seconds else None
    hardware, _ = refer_to_hardware("h100-32")
    record = Experiment(
        id="run", model=run.model, workload=run.workload, plan=run.plan, hardware=hardware, measured=measured
    )
    return study_of(record)


def test_a_step_far_outside_of_the_interval_is_the_finding_and_no_anchor():
    alone, (modelled,) = study(4.59), expect(study(None), [RUNS[0].plan])
    found = judge(alone)
    assert (found.verdict, found.causes[0].name) == ("slower", "network")
    assert "NCCL_DEBUG=INFO" in found.causes[0].check
    assert "One node alone" in found.causes[0].expects
    (predicted,) = expect(alone, [RUNS[0].plan])
    assert predicted.step_time == modelled.step_time
    assert propose(rank_candidates(alone), lambda *_: ()).recommendation.statement.startswith("Find out first why")


def test_a_step_inside_of_the_interval_anchors_predictions():
    inside = study(1.4)
    assert not judge(inside).is_finding
    (predicted,) = expect(inside, [RUNS[0].plan])
    assert predicted.step_time.value == pytest.approx(1.4)


@pytest.mark.parametrize(("times", "tokens"), [(2.0, 8192 * 4), (4.0, 8192 * 4), (0.3, 8192)])
def test_a_log_that_counts_the_tokens_of_a_step_says_which_of_them_ran(times, tokens):
    now = modelled(RUNS[3])
    found = judge_run(RUNS[3], MeasuredRun(times * now.step_time.value, tokens=tokens))
    others = {"sequence", "batch"} & {cause.name for cause in found.causes[:2]}
    assert bool(others) == (tokens != 8192 * 4)


def test_a_step_that_is_slower_than_modelled_but_as_good_as_published_ones_is_no_finding():
    run = a_run("llama3.1-70b", "v6e-256", "data=256 remat=full", 512, 8192, "MaxText")
    now = modelled(run)
    good, poor = (judge_run(run, MeasuredRun(times * now.step_time.value)) for times in (1.3, 1.6))
    assert is_outside(good.measured_s or 0.0, now.step_time)
    assert (good.is_finding, poor is not None and poor.is_finding) == (False, True)


@cases("variables, cause")
def test_what_the_environment_brings_about_is_the_likelier_cause(variables, cause):
    found, named = [], causes_set(variables)
    for run in RUNS:
        for seen in [MeasuredRun(modelled(one.run).step_time.value) for one in readings(run) if one.cause == cause]:
            judged = (judge_run(each, seen).causes for each in (run, replace(run, set_causes=named)))
            before, after = ({each.name: each for each in causes} for causes in judged)
            found += [(before[cause].weight, after[cause])] if cause in before else []
    assert found
    assert all(weight < one.weight and named[cause] in one.statement for weight, one in found)


def test_steps_of_which_some_are_as_fast_as_expected_are_interrupted_or_wait_for_data():
    now = modelled(RUNS[3])
    found = judge_run(RUNS[3], MeasuredRun(3 * now.step_time.value, least=now.step_time.value))
    assert {cause.name for cause in found.causes[:2]} == {"input", "interruptions"}
