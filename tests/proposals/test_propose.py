import json

import pytest

from asap.core.errors import InsufficientEvidenceError
from asap.experiments import Experiment, ExperimentStore, HardwareReference, refer_to_hardware
from asap.experiments.create import Statement, create_experiment
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.plans.validity import violations
from asap.prediction.predict_study import candidate_plans, expect
from asap.profiles import Kpis, Profile
from asap.proposals.propose import no_proposals, propose
from asap.proposals.selection.candidate import expected_gain, fit_odds
from asap.proposals.selection.choice import SAME_BET, SURER, choose
from asap.proposals.selection.ranked_candidates import rank_candidates
from asap.proposals.selection.strategy import changes, strategy, title
from asap.stacks.maxtext.overrides import from_overrides, to_overrides
from asap.study.open_study import open_study
from asap.study.study import study_of

PAPER = {
    "paper-v5p-512": ("compute", "data=16 seq=4 model=8"),
    "paper-v6e-16": ("hbm", "data=4 model=4"),
    "paper-v5e-256": ("communication", "data=8 seq=16 model=2"),
}
"""Bottleneck and expert mesh of the three experiments of the ASAP paper (section 3)."""


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
        now = to_overrides(study.plan)
        settings = now | changed
        assert not changed.items() & now.items()
        assert from_overrides(settings, study.plan.devices).ici == proposal.plan.ici


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
    study = study_of(crowded(), ran)
    predictions = {prediction.plan: prediction for prediction in expect(study, candidate_plans(study))}
    modelled = {prediction.plan: prediction.memory for prediction in expect(study_of(crowded()), list(predictions))}
    incumbent = modelled[study.plan]
    assert incumbent.total.value > incumbent.capacity_bytes
    assert predictions[study.plan].memory.total.value <= incumbent.capacity_bytes
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
    study = study_of(crowded())
    result = propose(rank_candidates(study), no_citations)
    assert result.proposals == ()
    assert "predicted to fit into HBM" in result.recommendation.statement


def crowded():
    """A model that is too large for its slice."""
    return Experiment(
        id="crowded",
        model=find_architecture("llama2-70b"),
        workload=Workload(global_batch=64, sequence_length=4096, precision="bf16", framework="MaxText"),
        hardware=HardwareReference(name="v5e-16"),
        plan=Plan.parse("data=16 remat=full"),
    )


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


def decoder_on(plan, hardware="v5p", topology="4x4x4", batch=512, framework="MaxText"):
    return study_of(
        Experiment(
            id="decoder",
            model=find_architecture("llama3.1-8b"),
            workload=Workload(global_batch=batch, sequence_length=4096, framework=framework),
            hardware=HardwareReference(chip=hardware, topology=topology and tuple(map(int, topology.split("x")))),
            plan=Plan.parse(plan),
        )
    )


def test_room_in_hbm_is_used_to_compute_less_again():
    found = propose(rank_candidates(decoder_on("data=64 remat=full", batch=128)), no_citations)
    first = found.proposals[0]
    assert first.plan.remat != "full"
    assert "ess rematerialisation" in first.title
    assert any("recomputed" in reason for reason in first.reasoning)
    assert any("stay in HBM" in cost for cost in first.trade_offs)
    assert "remat_policy=" in first.overrides.text
    assert first.prediction.memory
    assert first.prediction.memory.fits


def test_what_does_not_fit_may_compute_more_again():
    found = propose(rank_candidates(decoder_on("data=64 remat=none", batch=2048)), no_citations)
    assert found.incumbent
    assert found.incumbent.memory
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
    workload = Workload(global_batch=512, sequence_length=4096, framework="Megatron-LM")
    hardware, plan = HardwareReference(name="h100-64"), Plan.parse("replica=8 model=8 microbatches=64 remat=full")
    megatron = Experiment(
        id="gpu", model=find_architecture("llama3.1-8b"), workload=workload, hardware=hardware, plan=plan
    )
    parts = {"full.1/4", "full.1/2", "full.3/4", "selective.layernorm", "selective.layernorm+mlp"}
    assert set(map(str, _policies(study_of(megatron)))) == {"none", "selective", "full", *parts}


def _policies(study):
    return {candidate.plan.remat for candidate in rank_candidates(study).candidates}


def test_a_plan_that_adds_to_a_better_one_and_gains_nothing_is_no_proposal_of_its_own():
    work = Workload(global_batch=16, sequence_length=2048, precision="bf16", framework="Axolotl FSDP")
    now = Plan.parse("data=8 microbatches=2 remat=full offload=optimizer+parameters")
    record = Experiment(
        id="offloaded",
        model=find_architecture("qwen2.5-7b"),
        hardware=refer_to_hardware("h100-8")[0],
        plan=now,
        workload=work,
        hyperparameters={"base_model": "x", "fsdp_config.offload_params": True, "micro_batch_size": 1},
    )
    study = study_of(record)
    first, *others = choose(rank_candidates(study, {}).candidates, now)
    assert first.plan.offload == ()
    for other in others:
        more = strategy(other.plan, now) > strategy(first.plan, now)
        assert not more or expected_gain(other.prediction) > expected_gain(first.prediction)


def test_an_axis_is_not_added_to_a_better_plan_in_place_of_data_parallelism():
    work = Workload(global_batch=256, sequence_length=8192, precision="bf16", framework="torchtitan")
    now = Plan.parse("data=32 model=8 microbatches=1 remat=full")
    hardware = refer_to_hardware("h100-256")[0]
    record = Experiment(id="x", model=find_architecture("llama3-70b"), hardware=hardware, plan=now, workload=work)
    candidates = rank_candidates(study_of(record), {}).candidates
    first, *others = choose(candidates, now)
    assert first.plan.degree("seq") == 1 < max(one.plan.degree("seq") for one in candidates)
    assert not any(other.plan.degree("seq") > 1 for other in others)


SEVENTY = (
    "torchrun --nproc_per_node 8 --nnodes 16 pretrain_gpt.py --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672"
    " --num-attention-heads 64 --group-query-attention --num-query-groups 8 --seq-length 8192 --micro-batch-size 1"
    " --global-batch-size 1024 --bf16 --swiglu --use-distributed-optimizer --untie-embeddings-and-output-weights"
    " --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --sequence-parallel --recompute-activations"
    " --transformer-impl transformer_engine --vocab-size 128256 --attention-backend flash"
)


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
    work = Workload(global_batch=64, sequence_length=8192, precision="bf16", framework="torchtitan", attention="flash")
    now, hardware = Plan.parse("data=64 microbatches=1 remat=full"), refer_to_hardware("h100-64")[0]
    record = Experiment(id="x", model=find_architecture("llama2-13b"), hardware=hardware, plan=now, workload=work)
    first, *others = choose(rank_candidates(study_of(record), {}).candidates, now)
    (surer,) = (one for one in others if one.strategy == first.strategy)
    assert fit_odds(surer.prediction) > fit_odds(first.prediction) + SURER


def test_the_mesh_of_a_better_plan_alone_is_proposed_where_there_is_room():
    work = Workload(global_batch=256, sequence_length=4096, precision="bf16", framework="MaxText")
    now = Plan.parse("data=16 model=4 microbatches=1 remat=full")
    hardware = refer_to_hardware("v5e-64")[0]
    record = Experiment(id="x", model=find_architecture("llama2-7b"), hardware=hardware, plan=now, workload=work)
    first, *others = choose(rank_candidates(study_of(record), {}).candidates, now)
    assert first.plan.ici != now.ici
    assert first.plan.remat != now.remat
    assert [one.plan.remat for one in others if one.plan.ici == first.plan.ici].count(now.remat) == 1


def test_where_nothing_runs_five_axes_for_little_give_way_to_plain_data_parallelism(tmp_path):
    shape = {"hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_hidden_layers": 80}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**shape, "num_key_value_heads": 8, "vocab_size": 128256, "model_type": "llama"}))
    study = study_of(
        create_experiment(
            "bare",
            Statement(hardware="h100-64"),
            config=config,
            overrides=["workload.framework=torchtitan", "workload.global_batch=256", "workload.sequence_length=8192"],
        )
    )
    first, *_ = choose(rank_candidates(study, {}).candidates, study.plan)
    assert first.plan.degree("data") == 64
    assert first.plan.offload == ()
