import json

import pytest

from asap.core.errors import InsufficientEvidenceError
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.experiments.create import Statement, create_experiment
from asap.models import Workload
from asap.plans import Plan
from asap.plans.validity import violations
from asap.prediction.predict_study import candidate_plans, expect
from asap.profiles import Kpis, Profile
from asap.proposals.propose import no_proposals, propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.selection.candidate import expected_gain, fit_odds
from asap.proposals.selection.choice import SAME_BET, SURER, choose
from asap.proposals.selection.strategy import changes, strategy, title
from asap.stacks.maxtext.stack import plan_of
from asap.stacks.registry import spec
from asap.stacks.writing import to_settings
from asap.study.open_study import open_study
from asap.study.study import study_of
from tests.cases import kept
from tests.studies import PAPER
from tests.studies import study as study_of_run

CROWDED = study_of_run("data=16 remat=full", "llama2-70b", "v5e-16", 64, 4096)
"""A model that is too large for its slice."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return ExperimentStore(tmp_path_factory.mktemp("experiments"))


def no_citations(study, plan):
    return ()


@pytest.mark.parametrize("experiment", PAPER)
def test_the_paper_is_reproduced(store, experiment):
    bottleneck, expert = PAPER[experiment]
    study = open_study(experiment, store)
    result = propose(rank_candidates(study), no_citations)
    assert study.diagnosis.bottleneck == bottleneck
    assert Plan.parse(expert) in [proposal.plan for proposal in result.proposals]


@pytest.mark.parametrize("experiment", PAPER)
def test_three_valid_plans_of_different_strategy(store, experiment):
    study = open_study(experiment, store)
    result = propose(rank_candidates(study), no_citations)
    assert [proposal.rank for proposal in result.proposals] == [1, 2, 3]
    assert len({strategy(proposal.plan, study.plan) for proposal in result.proposals}) == 3
    for proposal in result.proposals:
        assert proposal.plan != study.plan
        assert not violations(proposal.plan, study.constraints)
        assert proposal.reasoning
        assert proposal.trade_offs
        assert proposal.prediction.relative_step_time.low < proposal.prediction.relative_step_time.high
        assert 0 < proposal.confidence.faster.value < 1
    scores = [proposal.score for proposal in result.proposals]
    assert scores == sorted(scores, reverse=True)
    assert result.incumbent.plan == study.plan


@pytest.mark.parametrize("experiment", PAPER)
def test_the_line_to_paste_reads_back_as_the_plan(store, experiment):
    study = open_study(experiment, store)
    for proposal in propose(rank_candidates(study), no_citations).proposals:
        changed = dict(term.split("=") for term in proposal.overrides.text.split())
        now = to_settings(spec("maxtext"), study.plan, {})
        settings = now | changed
        assert not changed.items() & now.items()
        assert plan_of(settings, study.plan.devices, 1, None).ici == proposal.plan.ici


def test_what_cannot_be_predicted_is_said_in_words(store):
    proposal = propose(rank_candidates(open_study("paper-v6e-16", store)), no_citations).proposals[0]
    impact = {entry.name: entry for entry in proposal.impact}
    assert impact["HBM"].quantity is None
    assert "without the architecture" in impact["HBM"].statement
    assert "what tensor parallelism will add" in impact["communication"].statement


def test_a_gain_below_the_noise_recommends_to_keep_what_runs(store):
    small = propose(rank_candidates(open_study("paper-v5p-512", store)), no_citations).recommendation
    assert small.keep_incumbent
    assert small.first == 1
    large = propose(rank_candidates(open_study("paper-v6e-16", store)), no_citations).recommendation
    assert not large.keep_incumbent


def test_an_unknown_batch_is_never_split_further_than_it_was(store):
    study = open_study("paper-v6e-16", store)
    shards = study.plan.batch_shards
    assert all(shards % c.plan.batch_shards == 0 for c in rank_candidates(study).candidates)


def test_a_precedent_moves_the_ranking(store):
    study = open_study("paper-v5e-256", store)
    favourite = Plan.parse("data=8 seq=8 model=4")
    assert rank_candidates(study).candidates[0].plan != favourite
    assert rank_candidates(study, {favourite: 0.5}).candidates[0].plan == favourite


def test_a_precedent_turns_no_predicted_loss_into_a_gain(store):
    study = open_study("paper-v5e-256", store)
    losing = rank_candidates(study).candidates[-1].plan
    ranked = rank_candidates(study, {losing: 0.5})
    found = next(candidate for candidate in ranked.candidates if candidate.plan == losing)
    assert found.prediction.relative_step_time.value > 1
    assert found.score < 0
    assert losing not in [candidate.plan for candidate in choose(ranked.candidates, study.plan)]


def test_without_facts_there_is_no_proposal_but_a_reason(store):
    experiment = Experiment(id="bare", hardware=HardwareReference(devices=8), workload=Workload(global_batch=8))
    store.add(experiment, replace=True)
    with pytest.raises(InsufficientEvidenceError) as caught:
        rank_candidates(open_study("bare", store))
    result = no_proposals(caught.value)
    assert result.proposals == ()
    assert result.recommendation.first is None
    assert "architecture" in result.recommendation.statement


def test_no_plan_that_needs_less_than_one_that_ran_is_refused(store):
    ran = Profile(source="a report", stated=True, kpis=Kpis(step_time_s=60.0))
    study = study_of(CROWDED.experiment, ran)
    predictions = {prediction.plan: prediction for prediction in expect(study, candidate_plans(study))}
    modelled = {prediction.plan: prediction.memory for prediction in expect(CROWDED, list(predictions))}
    incumbent = modelled[study.plan]
    assert incumbent.total.value > incumbent.capacity_bytes
    assert predictions[study.plan].memory.fits
    for plan, prediction in predictions.items():
        assert prediction.memory.fits or modelled[plan].total.value > incumbent.total.value
    assert not any(memory.fits for memory in modelled.values())


def test_a_loss_is_not_called_a_gain(store):
    study = open_study("paper-v6e-16", store)
    slower = [c for c in rank_candidates(study).candidates if c.prediction.relative_step_time.value > 1][:1]
    advice = propose(rank_candidates(study), no_citations, slower).recommendation
    assert advice.keep_incumbent
    assert "gain" not in advice.statement


def test_that_nothing_fits_is_said(store):
    result = propose(rank_candidates(CROWDED), no_citations)
    assert result.proposals == ()
    assert "predicted to fit into HBM" in result.recommendation.statement


def test_a_strategy_is_named_by_what_changes():
    before, after = Plan.parse("data=4 seq=4"), Plan.parse("data=4 model=4")
    assert title(after, before) == "More tensor parallelism, less context parallelism"
    assert [str(change) for change in changes(after, before)] == ["model 1→4", "seq 4→1"]
    assert strategy(before, before) == frozenset()


def test_recomputation_that_offloading_saves_is_its_reason():
    before = Plan.parse("data=8 stage=8 remat=full")
    after = Plan.parse("data=32 stage=2 remat=host.qkv")
    assert title(after, before) == "More FSDP, fewer pipeline stages, activations in host memory"
    reasons = [change.principle.reason for change in changes(after, before)]
    assert reasons[-1].startswith("tensors that the backward pass computed again wait for it in host memory")
    kept = Plan.parse("data=8 stage=8 remat=qkv")
    assert "leave HBM" in changes(after, kept)[-1].principle.reason


def decoder_on(plan, batch=512):
    return study_of_run(plan, "llama3.1-8b", "v5p-4x4x4", batch, 4096, precision=None)


def test_room_in_hbm_is_used_to_compute_less_again():
    found = propose(rank_candidates(decoder_on("data=64 remat=full", batch=128)), no_citations)
    first = found.proposals[0]
    assert first.plan.remat != "full"
    assert "ess rematerialisation" in first.title
    assert any("recomputed" in reason for reason in first.reasoning)
    assert any("stay in HBM" in cost for cost in first.trade_offs)
    assert "remat_policy=" in first.overrides.text
    assert first.prediction.memory.fits


def test_what_does_not_fit_may_compute_more_again():
    found = propose(rank_candidates(decoder_on("data=64 remat=none", batch=2048)), no_citations)
    assert not found.incumbent.memory.fits
    assert found.proposals
    for proposal in found.proposals:
        assert proposal.makes_fit
        assert proposal.prediction.memory.fits
        assert proposal.settings
    assert any(setting.name == "remat" for proposal in found.proposals for setting in proposal.settings)


def test_only_policies_of_the_stack_are_offered_and_none_that_is_not_known():
    silent = decoder_on("data=64")
    assert {candidate.plan.remat for candidate in rank_candidates(silent).candidates} == {None}
    tpu = decoder_on("data=64 remat=full")
    assert {"minimal", "full"} <= _policies(tpu)
    assert "none" not in _policies(tpu)
    assert "selective" not in _policies(tpu)
    plan = "replica=8 model=8 microbatches=64 remat=full"
    megatron = study_of_run(plan, "llama3.1-8b", "h100-64", 512, 4096, "Megatron-LM", precision=None)
    parts = {"full.1/4", "full.1/2", "full.3/4", "selective.layernorm", "selective.layernorm+mlp"}
    assert set(map(str, _policies(megatron))) == {"none", "selective", "full", *parts}


def _policies(study):
    return {candidate.plan.remat for candidate in rank_candidates(study).candidates}


def test_a_plan_that_adds_to_a_better_one_and_gains_nothing_is_no_proposal_of_its_own():
    settings = {"base_model": "x", "fsdp_config.offload_params": True, "micro_batch_size": 1}
    plan = "data=8 microbatches=2 remat=full offload=optimizer+parameters"
    study = study_of_run(plan, "qwen2.5-7b", "h100-8", 16, 2048, "Axolotl FSDP", settings=settings)
    now = study.plan
    first, *others = choose(rank_candidates(study, {}).candidates, now)
    assert first.plan.offload == ()
    for other in others:
        more = strategy(other.plan, now) > strategy(first.plan, now)
        assert not more or expected_gain(other.prediction) > expected_gain(first.prediction)


def test_an_axis_is_not_added_to_a_better_plan_in_place_of_data_parallelism():
    study = study_of_run("data=32 model=8 microbatches=1 remat=full", "llama3-70b", "h100-256", framework="torchtitan")
    candidates = rank_candidates(study, {}).candidates
    first, *others = choose(candidates, study.plan)
    assert first.plan.degree("seq") == 1 < max(one.plan.degree("seq") for one in candidates)
    assert not any(other.plan.degree("seq") > 1 for other in others)


SEVENTY = kept(__file__)["SEVENTY"]


def test_of_as_good_bets_of_one_strategy_the_one_that_changes_less_is_proposed(tmp_path):
    (script := tmp_path / "run.sh").write_text(SEVENTY.replace("--nnodes 16", "--nnodes 64"), encoding="utf-8")
    study = study_of(create_experiment("run", Statement(hardware="h100-512"), config=script))
    best, *_ = candidates = rank_candidates(study, {}).candidates
    first, *_ = choose(candidates, study.plan)
    assert first.strategy == best.strategy
    assert len(strategy(first.plan, study.plan)) < len(strategy(best.plan, study.plan))
    assert first.score > (1 - SAME_BET) * best.score
    assert fit_odds(first.prediction) > fit_odds(best.prediction)


def test_of_one_strategy_a_plan_that_is_surer_to_fit_is_proposed_beside_the_fastest():
    plan = "data=64 microbatches=1 remat=full"
    study = study_of_run(plan, "llama2-13b", "h100-64", 64, framework="torchtitan", attention="flash")
    first, *others = choose(rank_candidates(study, {}).candidates, study.plan)
    (surer,) = (one for one in others if one.strategy == first.strategy)
    assert fit_odds(surer.prediction) > fit_odds(first.prediction) + SURER


def test_the_mesh_of_a_better_plan_alone_is_proposed_where_there_is_room():
    study = study_of_run("data=16 model=4 microbatches=1 remat=full", "llama2-7b", "v5e-64", 256, 4096)
    now = study.plan
    first, *others = choose(rank_candidates(study, {}).candidates, now)
    assert first.plan.ici != now.ici
    assert first.plan.remat != now.remat
    assert [one.plan.remat for one in others if one.plan.ici == first.plan.ici].count(now.remat) == 1


def test_where_nothing_runs_five_axes_for_little_give_way_to_plain_data_parallelism(tmp_path):
    shape = {"hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_hidden_layers": 80}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**shape, "num_key_value_heads": 8, "vocab_size": 128256, "model_type": "llama"}))
    said = ["workload.framework=torchtitan", "workload.global_batch=256", "workload.sequence_length=8192"]
    study = study_of(create_experiment("bare", Statement(hardware="h100-64"), config=config, overrides=said))
    first, *_ = choose(rank_candidates(study, {}).candidates, study.plan)
    assert first.plan.degree("data") == 64
    assert first.plan.offload == ()
