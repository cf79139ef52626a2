import math
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.units import Provenance
from asap.evidence.step_belief import Prior, Result, StepBelief, believe, plans_apart
from asap.experiments.create import Statement, create_experiment
from asap.optimize.outcome import Code, Outcome, Status, Try, feedback
from asap.optimize.proposers.memory_belief import MemoryKernel, probability_fits
from asap.optimize.proposers.model_guided import ModelGuided
from asap.optimize.proposers.refusals import blamed, refused_setting, words_of
from asap.optimize.proposers.study_prior import Searched
from asap.optimize.results import best_of
from asap.plans import Plan
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.residual_kernel import ResidualKernel, plan_distances
from asap.proposals.test_worth import expected_saving
from asap.study.study import study_of
from tests.cases import cases

KERNEL = load_calibration().full.residual_kernel
MEMORY = MemoryKernel(0.0, 0.2)


def line(times: list[float], fill: list[float] | None = None) -> Prior:
    """Configurations ``0``, ``1``, … along a line, one doubling apart."""
    places = np.arange(len(times), dtype=float)
    return Prior(
        configurations=tuple(map(str, range(len(times)))), log_time=np.log(times),
        log_fill=None if fill is None else np.log(fill), effort=np.zeros(len(times)),
        apart=lambda place: np.abs(places - place)[None],
    )  # fmt: skip


def done(number: int, place: int, seconds: float, error: float | None = None) -> Try:
    outcome = Outcome(
        status="done", step_time_s=seconds, standard_error_s=error, steps=20, provenance=Provenance.MEASURED
    )
    return Try(number=number, configuration=str(place), why="", outcome=outcome)


def died(number: int, place: int, status: Status, code: Code) -> Try:
    outcome = Outcome(status=status, provenance=Provenance.MEASURED, feedback=(feedback(code),))
    return Try(number=number, configuration=str(place), why="", outcome=outcome)


def play(prior: Prior, truth: list[float], most: int) -> list[int]:
    proposer, tries = ModelGuided(prior, KERNEL), list[Try]()
    while len(tries) < most and (suggestion := proposer.propose(tries)) is not None:
        place = int(suggestion.configuration)
        tries.append(done(len(tries) + 1, place, truth[place]))
    return [int(each.configuration) for each in tries]


times = st.lists(st.floats(0.1, 10.0), min_size=2, max_size=12)


@given(times, st.data())
def test_every_configuration_is_tried_once_and_the_best_is_found(predicted, data):
    truth = data.draw(st.lists(st.floats(0.1, 10.0), min_size=len(predicted), max_size=len(predicted)))
    tried = play(line(predicted), truth, 100)
    assert sorted(tried) == list(range(len(predicted)))
    assert predicted[tried[0]] == pytest.approx(min(predicted))


@given(times, st.data())
def test_what_was_measured_is_believed(predicted, data):
    place = data.draw(st.integers(0, len(predicted) - 1))
    seconds = data.draw(st.floats(0.05, 20.0))
    prior = line(predicted)
    belief = believe(prior, KERNEL, [Result(str(place), seconds, 0.0, 1)], [prior.apart(place)])
    assert belief.mean[place] == pytest.approx(math.log(seconds), abs=1e-3)
    assert belief.deviation[place] < 0.1 * KERNEL.deviation
    assert np.all(belief.deviation >= 0)


def test_on_a_machine_far_from_the_model_its_differences_are_doubted():
    prior = line([1.0, 2.0, 4.0])
    usual, strange = (believe(prior, KERNEL, [Result("0", s, 0.0, 1)], [prior.apart(0)]) for s in (1.1, 50.0))
    assert np.all(usual.deviation[1:] < KERNEL.deviation)
    assert np.all(strange.deviation[1:] > 2 * KERNEL.deviation)


def test_what_a_lever_does_is_learnt_for_every_mesh():
    plans = [Plan.parse(f"{mesh} remat={remat}") for mesh in ("data=8", "data=4 model=2", "model=8")
             for remat in ("none", "full")]  # fmt: skip
    prior = Prior(tuple(map(str, plans)), np.zeros(6), None, np.zeros(6), plans_apart(plans))
    found = [Result(str(plans[0]), 1.0, 0.0, 1), Result(str(plans[1]), 0.7, 0.0, 1)]
    belief = believe(prior, KERNEL, found, [prior.apart(place) for place in (0, 1)])
    assert np.all(belief.mean[[3, 5]] < belief.mean[[2, 4]] - 0.05)


def parts_prior(again: list[float]) -> Prior:
    """Configurations in which what the backward pass does again takes so long beside a second, one doubling apart."""
    parts = np.stack([np.ones(len(again)), np.array(again)], axis=1)
    return replace(line(parts.sum(axis=1).tolist()), parts=parts)


def after(prior: Prior, kernel: ResidualKernel, seconds: dict[int, float]) -> StepBelief:
    found = [Result(str(place), time, 0.0, 1) for place, time in seconds.items()]
    return believe(prior, kernel, found, [prior.apart(place) for place in seconds])


def test_what_is_measured_carries_over_to_steps_that_differ_little():
    prior = parts_prior([0.5, 0.0, 0.02, 0.5])
    seconds = {0: 1.1, 1: 1.0}
    belief = after(prior, KERNEL, seconds)
    by_setting = after(prior, KERNEL.model_copy(update={"by_change": None}), seconds)
    of_the_model = np.exp(belief.mean - prior.log_time), np.exp(by_setting.mean - prior.log_time)
    assert of_the_model[0][3] < of_the_model[1][3]


def test_where_change_tells_nothing_settings_are_believed():
    prior = parts_prior([0.3] * 7)
    strange = {0: 0.6, 1: 1.6, 3: 1.7, 4: 0.6, 5: 1.6}
    belief = after(prior, KERNEL, strange)
    by_setting = after(prior, KERNEL.model_copy(update={"by_change": None}), strange)
    assert belief.mean == pytest.approx(by_setting.mean, abs=0.05)


@given(
    st.lists(
        st.builds(
            "data={} model={} microbatches={} remat={}{}".format,
            st.sampled_from((1, 2, 8)), st.sampled_from((1, 4)), st.sampled_from((1, 4)),
            st.sampled_from(("none", "full", "minimal")), st.sampled_from(("", " offload=optimizer")),
        ),
        min_size=1, max_size=8,
    )
)  # fmt: skip
def test_plans_are_as_far_apart_as_each_pair_is(texts):
    plans = [Plan.parse(text) for text in texts]
    for place, plan in enumerate(plans):
        found = plans_apart(plans)(place)
        assert found.sum(axis=0) == pytest.approx([sum(plan_distances(plan, other)) for other in plans])


def test_what_is_under_way_is_not_proposed_again():
    prior = line([1.0, 1.1, 1.2])
    proposer, tries = ModelGuided(prior, KERNEL), list[Try]()
    for number in (1, 2, 3):
        suggestion = proposer.propose(tries)
        tries.append(Try(number=number, **suggestion.model_dump(exclude={"saving"})))
    assert sorted(each.configuration for each in tries) == ["0", "1", "2"]
    assert proposer.propose(tries) is None


def test_a_machine_that_is_ten_times_slower_changes_no_order():
    predicted = [1.0, 1.1, 1.2, 1.3]
    prior = line(predicted)
    belief = believe(prior, KERNEL, [Result("0", 10.0, 0.0, 1)], [prior.apart(0)])
    assert list(np.argsort(belief.mean)) == [0, 1, 2, 3]
    assert belief.mean[3] == pytest.approx(math.log(13.0), abs=KERNEL.limit)


def test_a_disappointment_moves_its_neighbours_more_than_what_is_far():
    prior = line([1.0] * 8)
    belief = believe(prior, KERNEL, [Result("0", 1.2, 0.0, 1)], [prior.apart(0)])
    assert np.all(np.diff(belief.mean) < 0)
    assert np.all(np.diff(belief.deviation) > 0)


@given(st.floats(-1, 1), st.floats(0.01, 1))
def test_the_saving_is_the_partial_expectation_of_the_log_normal_distribution(gain, deviation):
    found, normal = float(expected_saving(np.array([gain]), np.array([deviation]))[0]), NormalDist()
    kept = math.exp(deviation**2 / 2 - gain) * normal.cdf((gain - deviation**2) / deviation)
    assert found == pytest.approx(max(normal.cdf(gain / deviation) - kept, 0.0), abs=1e-6)


def test_out_of_memory_is_a_lesson_for_what_needs_as_much():
    prior = line([1.0, 1.0, 1.0], fill=[0.5, 0.9, 1.0])
    before = probability_fits(prior, MEMORY, (), 1.0)
    after = probability_fits(prior, MEMORY, [died(1, 1, "rejected", Code.OUT_OF_MEMORY)], 1.0)
    assert np.all(np.diff(before) < 0)
    assert np.all(after <= before)
    assert after[2] < 0.1 < 0.9 < after[0]
    assert np.all(probability_fits(prior, MEMORY, [done(1, 2, 1.0)], 1.0) >= before)


def test_what_lies_next_to_what_was_refused_is_doubted_and_what_was_lost_is_tried_again():
    proposer = ModelGuided(line([1.0, 1.0, 1.0]), ResidualKernel(deviation=0.1, reach=2.0, limit=0.3))
    refused = [died(1, 0, "rejected", Code.INVALID)]
    assert proposer.propose(refused).configuration != "0"
    assert proposer.propose([died(1, 0, "lost", Code.PREEMPTED)]).configuration == "0"
    again = [died(number, 0, "lost", Code.PREEMPTED) for number in (1, 2, 3)]
    assert proposer.propose(again).configuration != "0"


def test_what_runs_now_is_tried_again_where_it_was_lost():
    proposer = ModelGuided(line([3.0, 1.0, 2.0]), KERNEL, first="0")
    lost = [died(number, 0, "lost", Code.INTERRUPTED) for number in (1, 2, 3)]
    proposed = [proposer.propose(lost[:count]) for count in range(4)]
    assert [each.configuration for each in proposed if each] == ["0", "0", "0", "1"]
    known = ModelGuided(line([3.0, 1.0, 2.0]), KERNEL, first="0", known=(Result("0", 3.0, 0.0, 1),))
    assert known.propose([]).configuration == "1"


def test_noise_that_leaves_the_winner_open_is_measured_again():
    proposer = ModelGuided(line([1.0, 1.01]), KERNEL)
    tries = [done(1, 0, 1.0, 0.05), done(2, 1, 1.01, 0.05)]
    suggestion = proposer.propose(tries)
    assert suggestion.why.startswith("again")
    tries.append(done(3, int(suggestion.configuration), 1.0, 0.05))
    assert best_of(tries).step_time_s == pytest.approx(1.0, abs=0.01)


def test_what_the_launcher_has_no_words_for_is_not_proposed():
    prior = line([1.0, 2.0])
    refusing = Prior(**{**vars(prior), "refused": lambda place: "no words" if place == 0 else None})
    assert ModelGuided(refusing, KERNEL).propose([]).configuration == "1"


def test_after_a_refusal_something_less_like_it_is_tried():
    """Here all lie within a reach of what was refused, so none of them is more likely to run than not."""
    prior = line([1.0, 1.01, 1.02])
    assert ModelGuided(prior, KERNEL).propose([died(1, 0, "rejected", Code.INVALID)]).configuration == "2"


def test_a_setting_that_the_launcher_refuses_is_found_out():
    """Blame falls on what the refused have in common and nothing has run with; what ran is cleared."""
    tries = [died(1, 0, "rejected", Code.INVALID), done(2, 0, 1.0), died(3, 0, "rejected", Code.INVALID)]
    plans = ("data=8 seq=2 remat=full", "data=16 remat=full", "data=4 seq=4 remat=none")
    tries = [one.model_copy(update={"configuration": plan}) for one, plan in zip(tries, plans, strict=True)]
    blame = blamed(tries)
    assert max(blame, key=lambda setting: blame[setting]) == "seq"
    assert {"data", "remat", "remat=full"}.isdisjoint(blame)
    assert sum(blamed(tries[:1]).values()) == pytest.approx(1)


@cases("ran, refused, message, next_one, setting")
def test_what_a_message_names_is_not_tried_again(ran, refused, message, next_one, setting):
    said = Outcome(status="rejected", provenance=Provenance.MEASURED, feedback=(feedback(Code.INVALID, message),))
    tries = [done(1, ran, 1.0), Try(number=2, configuration=refused, why="", outcome=said)]
    assert refused_setting(words_of(next_one), blamed(tries, words_of)) == setting


def test_what_ran_out_of_memory_is_repaired_by_the_nearest_that_is_likely_to_fit():
    prior = line([1.0, 1.1, 1.2, 1.3, 1.4], fill=[0.95, 0.9, 0.8, 0.4, 0.3])
    proposer, tries = ModelGuided(prior, KERNEL, MEMORY), list[Try]()
    for number in (1, 2):
        suggestion = proposer.propose(tries)
        lost = died(number, int(suggestion.configuration), "rejected", Code.OUT_OF_MEMORY)
        outcome = proposer.repaired(lost.outcome, lost.configuration, tries)
        tries.append(lost.model_copy(update={"outcome": outcome}))
    repair = outcome.feedback[0].repair
    assert prior.log_fill[int(repair.text)] < prior.log_fill[int(tries[-1].configuration)]
    suggestion = proposer.propose(tries)
    assert (suggestion.configuration, suggestion.why[:13]) == (repair.text, "repairs try 2")


def test_where_what_runs_now_does_not_fit_the_first_try_is_near_it():
    """Far away a configuration is faster by 2 %, and by how much it differs from the model nobody knows."""
    prior = line([1.0, 1.10, 1.12, 1.08], fill=[3.0, 0.5, 0.5, 0.5])
    suggestion = ModelGuided(prior, KERNEL, MEMORY, first="0").propose([])
    assert (suggestion.configuration, suggestion.why) == ("1", "likely to fit, fast, and near what runs now")
    assert ModelGuided(prior, KERNEL, MEMORY).propose([]).configuration == "3"


def test_a_repair_lowers_the_degree_of_the_axis_that_is_waited_for():
    plans = [
        Plan.parse(f"{mesh} remat=full") for mesh in ("data=2 model=8", "data=4 model=4", "data=16", "data=1 model=16")
    ]
    names = tuple(map(str, plans))
    prior = Prior(names, np.zeros(4), np.log([0.5] * 4), np.zeros(4), plans_apart(plans))
    said = feedback(Code.SYNCHRONOUS_COLLECTIVE, axis="model")
    outcome = Outcome(status="done", step_time_s=1.0, provenance=Provenance.COMPILED, feedback=(said,))
    found = ModelGuided(prior, KERNEL, MEMORY).repaired(outcome, names[0], [])
    assert found.feedback[0].repair.text == names[1]


def test_what_only_saves_hbm_is_not_tried_where_everything_fits_without(home):
    decoder = Path(__file__).resolve().parents[2] / "scripts" / "optimization" / "decoder.yml"
    record = create_experiment("small", Statement(hardware="v5e-8"), config=decoder)
    study = study_of(record)
    proposer, tries = Searched.of(study).proposer(), list[Try]()
    for number in range(1, 7):
        suggestion = proposer.propose(tries)
        plan = Plan.parse(suggestion.configuration)
        assert (plan.offload, plan.loss_chunks) == ((), None)
        slow = done(number, 0, 0.681 - 0.001 * number)
        tries.append(slow.model_copy(update={"configuration": suggestion.configuration}))
