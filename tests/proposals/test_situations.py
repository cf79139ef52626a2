import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from asap.diagnosis import Bottleneck
from asap.evidence.step_belief import Z_90
from asap.levers.table import ON_REQUEST
from asap.plans import Plan
from asap.plans.validity import violations
from asap.prediction.predict_study import expect
from asap.proposals.options import options
from asap.proposals.propose import draft, propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.recommend import recommend
from asap.proposals.selection.candidate import SURE_TO_FIT, after_doubt, after_doubt_of_each, expected_gain, fit_odds
from asap.proposals.selection.choice import LEAST_WORTH, MEASURABLE, NOTABLE, SURER, changes_of, choose
from asap.proposals.selection.search import LIKELY, best_plans, search
from asap.proposals.selection.strategy import strategy
from asap.proposals.situation import TOO_TIGHT
from asap.proposals.test_worth import expected_saving
from asap.study.study import Preferences
from tests.studies import study as run


def proposed(study):
    return propose(rank_candidates(study, priors={}), lambda study, plan: ())


MESHES = (
    "data=256", "data=64 model=4", "data=16 model=16", "replica=4 data=64", "data=64 seq=4", "data=32 seq=2 model=4",
)  # fmt: skip
RUNS = (
    ("llama3.1-8b", "v5e-256", "MaxText", MESHES),
    (
        "mixtral-8x7b", "v6e-64", "MaxText",
        ("data=64", "data=8 expert=8", "data=16 expert=2 model=2", "replica=2 data=32"),
    ),
    ("llama3.1-70b", "v5p-128", "MaxText", ("data=64", "data=16 model=4", "data=16 seq=4", "data=16 stage=4")),
    ("llama2-13b", "h100-64", "Megatron-LM", ("replica=64", "replica=16 model=4", "replica=8 model=2 stage=4")),
    ("qwen3-30b-a3b", "h100-32", "torchtitan", ("data=32", "data=8 model=4", "replica=2 data=16")),
    ("llama2-7b", "mi300x-8", "torchtitan", ("data=8", "data=4 model=2")),
)  # fmt: skip
"""Dense and of experts, on tori and fabrics, by stacks with and without compilers of whole steps."""
POLICIES = ("none", "minimal", "save_qkv_proj", "full")


@st.composite
def runs(draw):
    model, hardware, framework, meshes = draw(st.sampled_from(RUNS))
    mesh, microbatches = draw(st.sampled_from(meshes)), draw(st.sampled_from([1, 2, 4]))
    policies = POLICIES if framework == "MaxText" else ("none", "full")
    plan = f"{mesh} microbatches={microbatches} remat={draw(st.sampled_from(policies))}"
    batch, sequence = draw(st.sampled_from([256, 512, 2048])), draw(st.sampled_from([2048, 8192, 32768]))
    allowed = draw(st.sets(st.sampled_from(ON_REQUEST)))
    return replace(run(plan, model, hardware, batch, sequence, framework), preferences=Preferences(frozenset(allowed)))


@settings(max_examples=25, deadline=None)
@given(study=runs())
@example(study=run("data=64 microbatches=2 remat=none", "llama3.1-70b", "v5p-128", 256, 2048))
@example(study=run("data=64 microbatches=2 remat=none", "llama3.1-70b", "v5p-128", 2048, 2048))
@example(study=run("data=32 seq=2 model=4 microbatches=2 remat=none", batch=256, sequence=32768))
def test_order_and_figures_agree_strategies_differ_and_none_is_far_behind(study):
    assume(not violations(study.plan, study.constraints))
    found = proposed(study)
    proposals = found.proposals
    assert len(proposals) <= 3
    assert_none_is_far_behind(proposals, study)
    for one, other in itertools.combinations(proposals, 2):
        surer = abs(fit_odds(one.prediction) - fit_odds(other.prediction)) > SURER
        surer = surer or (found.smallest_fit is not None and one.plan == found.smallest_fit.plan)
        assert surer or one.strategy != other.strategy
    assert len({proposal.plan for proposal in proposals}) == len(proposals)
    least = found.smallest_fit
    small_first = least is not None and found.situation.name in TOO_TIGHT and not least.settings
    others = proposals[small_first:]
    assert not small_first or proposals[0].plan == least.plan
    assert not small_first or all(is_better(one.prediction, least.prediction) for one in others)
    assert [one.score for one in others] == sorted((one.score for one in others), reverse=True)
    for proposal in proposals:
        assert not violations(proposal.plan, study.constraints)
        assert proposal.prediction.memory.fits
        assert min(len(proposal.settings), len(proposal.overrides.text)) > 0
        assert ("likely" in proposal.impact[-1].statement) == (fit_odds(proposal.prediction) < SURE_TO_FIT)
    fits = found.incumbent.memory.fits
    assert (found.situation.name in TOO_TIGHT) == (not fits)
    if not fits:
        assert "Keep" not in found.recommendation.statement
        assert not found.recommendation.keep_incumbent
        return
    figures = [
        (1 - p.prediction.relative_step_time.value, p.confidence.faster.value, fit_odds(p.prediction))
        for p in proposals
    ]
    assert all(gain >= 1 - math.exp(-MEASURABLE) for gain, *_ in figures)
    for above, below in itertools.pairwise(figures):
        assert not all(b > a for a, b in zip(above, below, strict=True))
    moves = [(p.plan, strategy(p.plan, study.plan)) for p in proposals if p.plan.ici != study.plan.ici]
    parts = {
        plan
        for (first, better), (plan, weaker) in itertools.combinations(moves, 2)
        if first.ici == plan.ici and weaker <= better
    }
    assert len(parts) <= 1, "the mesh of a better proposal alone"
    assert found.recommendation.first == (1 if proposals else None)


def is_better(one, least):
    return one.tokens_per_second.value > least.tokens_per_second.value or fit_odds(one) > fit_odds(least) + SURER


def assert_none_is_far_behind(proposals, study):
    for better, other in itertools.combinations(proposals, 2):
        if not other.makes_fit:
            assert expected_gain(other.prediction) >= expected_gain(proposals[0].prediction) / 2
            assert other.score >= proposals[0].score / 4
        elif changes_of(other.plan, study.plan) >= changes_of(better.plan, study.plan):
            odds, of_better = fit_odds(other.prediction), fit_odds(better.prediction)
            longer = expected_gain(better.prediction) - expected_gain(other.prediction) - math.log(odds / of_better)
            assert longer < math.log(1.1) + 1e-9 or odds > of_better


def test_a_small_gain_that_is_about_as_likely_a_loss_is_no_proposal():
    study = run("data=256 microbatches=1 remat=full", "gemma3-27b", "v6e-256", 512, 8192)
    candidates = rank_candidates(study, priors={}).candidates
    assert any(expected_gain(one.prediction) > MEASURABLE for one in candidates)
    found = proposed(study)
    assert (found.proposals, found.situation.name) == ((), "near_limit")
    assert "likely to fit" in found.situation.statement


def test_a_notable_gain_is_proposed_with_its_odds_however_wide_its_interval():
    study = run("data=128 microbatches=1 remat=full", "gpt-oss-120b", "tpu7x-128", 1024, 8192)
    found = proposed(study)
    wide = [one for one in found.proposals if one.score < LEAST_WORTH]
    assert wide
    assert all(expected_gain(one.prediction) >= NOTABLE and one.confidence.faster.value > 0.5 for one in wide)
    assert found.situation.name != "well_set"
    assert found.recommendation.keep_incumbent
    assert "but only 53 % likely to gain at all" in found.recommendation.statement


def test_plans_that_move_the_same_axes_by_other_degrees_are_one_idea():
    study = run("data=64 model=8 microbatches=1 remat=full", "llama3.1-405b", "h200-512", 128, 8192, "torchtitan")
    candidates = rank_candidates(study, priors={}).candidates
    first, *others = choose(candidates, study.plan)
    assert (first.plan.degree("model") < 8, first.plan.degree("seq") > 1) == (True, True)
    shifted = [one for one in candidates if one.plan.degree("model") < 8 and one.plan.degree("seq") > 1]
    assert len(shifted) > 1
    same = (first.plan.remat, first.plan.offload)
    alike = [one for one in others if one in shifted and (one.plan.remat, one.plan.offload) == same]
    assert not [one for one in alike if one.plan.degree("stage") == first.plan.degree("stage")]


@pytest.mark.parametrize("plan", ["replica=2 model=4 stage=2", "replica=4 seq=2 model=2", "replica=4 model=2 expert=2"])
def test_a_degree_of_experts_that_the_line_sets_is_among_the_changed_settings(plan):
    over = ("model", "seq")
    study = run(f"{plan} microbatches=8 remat=full", "qwen3-30b-a3b", "h100-16", 128, 4096, "Megatron-Core",
                experts_over=over)  # fmt: skip
    candidates = rank_candidates(study, priors={}).candidates[:40]
    assert any(one.plan.degree("seq") > 1 for one in candidates)
    for candidate in candidates:
        found = draft(study, candidate, 1, ())
        named = [setting.after for setting in found.settings if setting.name == "expert"]
        assert re.findall(r"--expert-model-parallel-size (\d+)", found.overrides.text) == named
        assert ("expert parallelism" in found.title) == bool(named)


ON_GPUS = run(
    "replica=2 model=2 stage=2 microbatches=4 remat=full", "llama2-7b", "h100-8", 128, 4096, "Megatron-Core",
    attention="flash", zero_stage=1, sequence_parallel=True, overlaps_tensor=False,
)  # fmt: skip


@pytest.mark.parametrize(("study", "allowed"), [
    (run("data=16 model=16 microbatches=1 remat=full"), ()),
    (run("data=16 model=16 microbatches=1 remat=full"), ("first_moment", "weight_precision", "global_batch")),
    (ON_GPUS, ("second_moment", "optimizer", "global_batch")),
])  # fmt: skip
def test_the_grid_says_what_the_prediction_says(study, allowed):
    study = replace(study, preferences=Preferences(frozenset(allowed)))
    found = search(study, lambda meshes: np.zeros(len(meshes)))
    places = np.argwhere(found.evaluation.valid)[:: max(found.considered // 60, 1)]
    for place, prediction in zip(places, expect(study, [found.plan(place) for place in places]), strict=True):
        index = tuple(place)
        assert -math.log(prediction.relative_step_time.value) == pytest.approx(found.evaluation.gain[index])
        assert prediction.memory.total.value == pytest.approx(found.evaluation.hbm[index])
        assert prediction.memory.fits == found.evaluation.fits[index]
        width = math.log(prediction.relative_step_time.high / prediction.relative_step_time.value)
        assert width == pytest.approx(found.evaluation.half_width(index))


def test_the_first_proposal_beats_whatever_can_be_predicted():
    study = run("data=16 model=16 microbatches=1 remat=full")
    found = proposed(study)
    assert found.situation.name == "improvable"
    everything = search(study, lambda meshes: np.zeros(len(meshes)))
    places, figures = tuple(everything.possible.T), everything.evaluation
    worth = after_doubt_of_each(figures.gain[places], figures.half_width(places), figures.fit_odds[places])
    plain = next(row for row in np.argsort(-worth) if not makes_room(everything.plan(everything.possible[row])))
    assert found.proposals[0].score == pytest.approx(worth[plain], abs=0.005)
    assert found.proposals[0].plan.degree("model") < 16
    assert fit_odds(found.proposals[0].prediction) >= LIKELY
    assert not makes_room(found.proposals[0].plan)


def makes_room(plan: Plan) -> bool:
    return plan.moves_activations or bool(plan.offload) or (plan.loss_chunks or 1) > 1


def test_what_does_not_fit_is_said_and_the_smallest_change_is_the_first_proposal():
    found = proposed(run("data=256 microbatches=1 remat=full", batch=2048))
    assert re.match(r"It does not fit: it needs 3\d\.\d GiB of 15\.8 GiB HBM", found.situation.statement)
    assert found.recommendation.first == 1
    assert len(found.proposals[0].settings) == 1
    assert all(proposal.prediction.memory.fits_host for proposal in found.proposals)


def test_what_host_memory_cannot_hold_does_not_fit():
    study = run("data=256 microbatches=1 remat=full", batch=2048)
    (found,) = expect(study, [Plan.parse("data=256 microbatches=4 remat=host.qkv+host.out offload=activations")])
    assert found.memory.fits
    (found,) = expect(
        study, [Plan.parse("data=256 microbatches=1 loss_chunks=16 remat=host.qkv+host.out offload=activations")]
    )
    assert (found.memory.total.value < found.memory.capacity_bytes, found.memory.fits) == (True, False)
    assert any("host memory" in note for note in found.notes)


def test_a_run_that_is_well_set_is_told_so_and_what_more_would_take():
    study = run("data=128 seq=2 microbatches=2 remat=query+key+value+context+out+gate+up offload=activations")
    ranked = rank_candidates(study, priors={})
    found = propose(ranked, lambda study, plan: ())
    assert found.situation.name == ("well_set" if fit_odds(ranked.incumbent) >= LIKELY else "near_limit")
    assert ("% likely to fit" in found.situation.statement) == (fit_odds(ranked.incumbent) < LIKELY)
    assert found.recommendation.keep_incumbent
    offered = options(study, ranked.incumbent)
    assert {option.changes for option in offered} == {"numerics"}  # twice the batch brings no more tokens/s
    assert all(option.tokens_per_second > 1 for option in offered)
    assert found.modelled.bottleneck == "compute"
    assert sum(share.fraction for share in found.modelled.shares) == pytest.approx(1.0, abs=0.01)


def test_what_a_test_is_worth_grows_with_the_steps_to_go():
    def worth(steps):
        study = run("data=16 model=16 microbatches=1 remat=full")
        object.__setattr__(study, "preferences", Preferences(steps_to_go=steps, prices={"v5e": 1.2}))
        return proposed(study).proposals[0].test_worth

    little, much = worth(21), worth(100_000)
    assert (little.worth_it, much.worth_it) == (False, True)
    assert much.money == pytest.approx((much.expected_saving - much.chip_hours) * 1.2)


@given(gain=st.floats(-1, 1), width=st.floats(0.01, 2))
def test_after_doubt_a_gain_is_never_more_than_it_was(gain, width):
    exact = after_doubt(gain, width)
    assert exact <= gain + 1e-12 if gain < 0 else 0 <= exact <= gain
    assert after_doubt_of_each(np.array([gain]), np.array([width]))[0] == pytest.approx(exact, abs=2e-3)
    mean_ratio = math.exp((width / Z_90) ** 2 / 2 - gain)
    assert 1 >= float(expected_saving(np.array(gain), np.array(width / Z_90))) >= max(1 - mean_ratio, 0) - 1e-9


def test_no_plan_is_proposed_that_the_rules_of_the_configuration_have_no_axis_for():
    rules = [["activation_batch", ["data", "fsdp"]], ["embed", ["fsdp"]]]
    settings = {"mesh_axes": ["data", "fsdp"], "logical_axis_rules": rules, "remat_policy": "full"}
    settings["ici_fsdp_parallelism"] = 256
    found = proposed(run("data=256 microbatches=1 remat=full", batch=1024, settings=settings))
    assert found.proposals
    assert all(proposal.plan.degree("model") == proposal.plan.degree("seq") == 1 for proposal in found.proposals)


def test_a_lever_on_request_is_in_the_list_of_predict_where_it_is_allowed():
    study = run("data=256 microbatches=1 remat=full", batch=2048)
    wished = replace(study, preferences=Preferences(frozenset({"weight_precision"})))
    assert {plan.weight_precision for plan in best_plans(study, 5)} == {None}
    assert "bf16" in {plan.weight_precision for plan in best_plans(wished, 5)}


def test_copies_with_host_memory_are_not_kept_where_no_mesh_shortens_them():
    said = recommend((), 5, bottleneck=Bottleneck.HOST_TRANSFER)
    assert (said.keep_incumbent, "offload less" in said.statement) == (False, True)
    assert recommend((), 5, bottleneck=Bottleneck.HBM).keep_incumbent


def test_what_would_fit_otherwise_is_something_that_the_launcher_can_say():
    settings = {"zero_optimization.stage": 3, "TrainingArguments.per_device_train_batch_size": 2}
    study = run("data=8 microbatches=8 remat=full", "qwen2.5-7b", "h100-8", 128, 32_768, "DeepSpeed",
                settings=settings, zero_stage=3)  # fmt: skip
    found = options(study, expect(study, [study.plan])[0])
    assert found
    assert all(option.plan.degree("seq") == 1 for option in found)
