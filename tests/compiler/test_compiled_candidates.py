import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.compiler.assess import assess
from asap.compiler.programs.options import REFERENCE_STEP
from asap.compiler.programs.request import CompiledMemory, CompileOutcome, make_request
from asap.core.errors import BadInputError
from asap.core.units import GIB, Provenance, Quantity
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.proposals.rank_compiled import combine, compile_candidates, rank_compiled
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.selection.candidate import expected_gain
from asap.proposals.selection.choice import choose
from asap.study.open_study import open_study

MODEL = Architecture(name="small", layers=8, d_model=2048, d_ff=8192, heads=16, kv_heads=16, head_dim=128, vocab=32000)
WIDTH = 0.1


def experiment(hardware, plan):
    return Experiment(
        id="run", model=MODEL, plan=Plan.parse(plan), workload=Workload(global_batch=64, sequence_length=2048),
        hardware=HardwareReference(name=hardware, devices=16),
    )  # fmt: skip


@pytest.fixture
def field(home):
    ExperimentStore().add(experiment("v5e-16", "data=4 model=4 remat=full"))
    return rank_candidates(open_study("run", ExperimentStore()), priors={})


def answering(field, too_large=(), seconds=None, reduced=()):
    """What the compiler would say, and the plans that it was asked for."""
    asked = []

    def verify(plans):
        asked.extend(plans)
        return [answer(plan) for plan in plans]

    def answer(plan):
        hardware = field.study.slice
        request = make_request(hardware, plan, MODEL, field.study.experiment.workload)
        if plan in too_large:
            outcome = CompileOutcome(status="does_not_fit", needed_bytes=20 * GIB, available_bytes=15.75 * GIB)
        else:
            memory = CompiledMemory(peak=3 * GIB, arguments=GIB, outputs=0, aliased=0, temporaries=GIB, code=0, host=0)
            effort = "reduced" if plan in reduced else "full"
            outcome = CompileOutcome(status="compiled", memory=memory, effort=effort)
        time = Quantity(value=(seconds or {}).get(plan, 1.0), unit="s", provenance=Provenance.COMPILED, source="test")
        return assess(request, outcome, hardware, None).model_copy(update={"step_time": time})

    return verify, asked


def test_the_incumbent_and_the_three_best_are_compiled_and_lead(field):
    verify, asked = answering(field)
    best = [candidate.plan for candidate in choose(field.candidates, field.study.plan)]
    found = compile_candidates(field, verify, WIDTH)
    assert asked[: len(best) + 1] == [field.study.plan, *best]
    assert {candidate.plan for candidate in found.candidates[: len(best)]} <= set(asked)
    assert {candidate.plan for candidate in choose(found.candidates, field.study.plan)} <= set(asked)
    assert len(found.candidates) == len(field.candidates)
    for prediction in (found.incumbent, *(candidate.prediction for candidate in found.candidates[:3])):
        assert prediction.memory.total.value == 3 * GIB
        assert prediction.memory.total.provenance == "compiled"
        assert any(note.startswith("compiled:") for note in prediction.notes)


def test_what_does_not_fit_is_replaced_by_a_plan_that_is_compiled_too(field):
    best = [candidate.plan for candidate in choose(field.candidates, field.study.plan)]
    as_modelled = {one.plan: one.prediction.relative_step_time.value for one in field.candidates}
    verify, asked = answering(field, too_large=best[:2], seconds=as_modelled)
    found = compile_candidates(field, verify, WIDTH)
    chosen = [candidate.plan for candidate in choose(found.candidates, field.study.plan)]
    assert chosen
    assert not set(chosen) & set(best[:2])
    assert set(chosen) <= set(asked)


def test_a_compiled_step_time_moves_the_gain_and_narrows_the_interval(field):
    best = choose(field.candidates, field.study.plan)[0]
    modelled = best.prediction.relative_step_time
    verify, _ = answering(field, seconds={field.study.plan: 1.0, best.plan: 0.9 * modelled.value})
    found = compile_candidates(field, verify, WIDTH)
    after = next(candidate for candidate in found.candidates if candidate.plan == best.plan)
    relative = after.prediction.relative_step_time
    assert 0.9 * modelled.value <= relative.value < modelled.value
    assert relative.provenance == "compiled"
    assert relative.high / relative.low < modelled.high / modelled.low
    assert best.score < after.score <= expected_gain(after.prediction)
    step = after.prediction.step_time
    assert step.value == pytest.approx(best.prediction.step_time.value * relative.value / modelled.value)
    assert step.low < step.value < step.high


def test_the_order_follows_the_compiler(field):
    best = [candidate.plan for candidate in choose(field.candidates, field.study.plan)]
    seconds = {field.study.plan: 1.0, best[0]: 5.0, best[1]: 0.2}
    found = compile_candidates(field, answering(field, seconds=seconds)[0], log_half_width=0.01)
    chosen = [candidate.plan for candidate in choose(found.candidates, field.study.plan)]
    assert chosen[0] == best[1]
    assert best[0] not in chosen


def test_times_of_different_efforts_are_not_compared(field):
    best = choose(field.candidates, field.study.plan)[0]
    verify, _ = answering(field, seconds={field.study.plan: 1.0, best.plan: 5.0}, reduced=[best.plan])
    found = compile_candidates(field, verify, WIDTH)
    after = next(candidate for candidate in found.candidates if candidate.plan == best.plan)
    assert after.prediction.relative_step_time == best.prediction.relative_step_time


def test_gpus_are_refused_in_one_line(home):
    ExperimentStore().add(experiment("h100-16", "data=4 model=4"))
    field = rank_candidates(open_study("run", ExperimentStore()), priors={})
    with pytest.raises(BadInputError, match="NVIDIA H100"):
        rank_compiled(field, REFERENCE_STEP, lambda stage: None)


@given(*[st.floats(-2, 2), st.floats(0.01, 1)] * 2)
def test_two_estimates_meet_between_them_nearer_to_the_narrower(a, wide_a, b, wide_b):
    middle, half = combine((a, wide_a), (b, wide_b))
    assert min(a, b) - 1e-9 <= middle <= max(a, b) + 1e-9
    assert half >= (wide_a**-2 + wide_b**-2) ** -0.5 * (1 - 1e-9)
    if not math.isclose(wide_a, wide_b) and a != b:
        assert (abs(middle - a) < abs(middle - b)) == (wide_a < wide_b)


def test_estimates_that_contradict_each_other_are_believed_less():
    agreed, apart = combine((0.0, 0.1), (0.05, 0.1))[1], combine((0.0, 0.1), (1.0, 0.1))[1]
    assert apart > 3 * agreed
