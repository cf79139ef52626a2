"""What does not fit is told the smallest change with which it does, searched beyond the mesh."""

import pytest

from asap.core.units import Provenance, Quantity
from asap.evidence.judgement import Judgement
from asap.proposals.proposal import Recommendation
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.recommend import after_judgement
from asap.proposals.selection.candidate import LIKELY, add_precedent, fit_odds
from asap.proposals.selection.choice import changes_of
from asap.proposals.smallest_fit import SmallestFit, smallest_fit
from asap.study.study import Study
from tests.studies import study


def run(plan: str, model: str, hardware: str, batch: int, length: int, framework: str, **settings: object) -> Study:
    known = {"attention", "sequence_parallel", "zero_stage", "weight_precision"}
    rest = {key: value for key, value in settings.items() if key not in known}
    stated = {key: value for key, value in settings.items() if key in known}
    return study(plan, model, hardware, batch, length, framework, settings=rest, **stated)


def found(study: Study) -> SmallestFit:
    smallest = smallest_fit(study)
    assert smallest.prediction.memory.fits
    return smallest


MEGATRON = {"tensor_model_parallel_size": 8, "micro_batch_size": 1, "use_distributed_optimizer": True}


def test_settings_beside_every_plan_are_searched_together_with_it():
    study = run(
        "replica=2 model=8 microbatches=16 remat=selective", "llama3-70b", "h200-16", 32, 8192, "Megatron-LM",
        attention="flash", zero_stage=1, sequence_parallel=False, **MEGATRON,
    )  # fmt: skip
    smallest = found(study)
    assert smallest.plan.sequence_parallel is True
    assert "--sequence-parallel" in smallest.lines[0]
    assert fit_odds(smallest.prediction) >= LIKELY
    advice = propose(rank_candidates(study, priors={}), lambda *_: ())
    assert advice.recommendation.statement.startswith("Start with")


def test_a_setting_that_is_not_enough_alone_is_named_with_the_mesh_that_fits_beside_it():
    study = run(
        "replica=8 microbatches=1 remat=none", "llama2-7b", "a100-40gb-8", 8, 2048, "Megatron-Core", attention="flash",
        micro_batch_size=1,
    )  # fmt: skip
    smallest = found(study)
    assert smallest.settings == {"use-distributed-optimizer": "true"}
    assert smallest.plan != study.plan
    advice = propose(rank_candidates(study, priors={}), lambda *_: ()).recommendation
    assert advice.statement.startswith("Start with the smallest change that fits: the distributed optimizer")


@pytest.mark.parametrize("hardware", ["h100-8", "a100-80gb-8"])
def test_the_smallest_change_is_never_larger_than_what_the_mesh_alone_would_take(hardware: str):
    study = run(
        "data=8 microbatches=1 remat=none", "llama3-8b", hardware, 16, 8192, "torchtitan", attention="flash",
        **{"training.seq_len": 8192, "parallelism.data_parallel_shard_degree": 8},
    )  # fmt: skip
    smallest = found(study)
    assert (len(smallest.settings) + changes_of(smallest.plan, study.plan), len(smallest.lines)) == (1, 1)


@pytest.mark.parametrize("length", [2048, 3072, 4096])
def test_the_smallest_change_changes_something_where_little_is_said_and_the_odds_are_wide(length: int):
    study = run(
        "data=64 microbatches=2 remat=full", "qwen2.5-72b", "a100-40gb-64", 128, length, "DeepSpeed", zero_stage=3,
        **{"train_micro_batch_size_per_gpu": 1, "zero_optimization.stage": 3},
    )  # fmt: skip
    smallest = found(study)
    assert smallest.settings or changes_of(smallest.plan, study.plan)
    assert smallest.statement[0].isalpha()


def test_what_no_change_makes_fit_has_none_and_is_told_so_and_what_may_fit_is_named():
    study = run("data=16 microbatches=1 remat=full", "llama3-405b", "v5e-16", 16, 8192, "MaxText", attention="flash")
    assert smallest_fit(study) is None
    even = run("data=8 microbatches=1 remat=full", "llama2-70b", "h100-8", 8, 16384, "Megatron-LM", attention="flash")
    for one, told in ((study, "whatever settings change with it"), (even, "that may fit, as nothing is likely to")):
        assert told in propose(rank_candidates(one, priors={}), lambda *_: ()).recommendation.statement


@pytest.mark.parametrize(("keep", "first"), [(True, None), (False, 1)])
def test_beside_a_step_that_is_not_explained_only_a_proposal_worth_a_test_is_named(keep, first):
    expected = Quantity(value=61.0, unit="s", low=46.0, high=82.0, provenance=Provenance.MODELLED, source="the model")
    finding = Judgement(verdict="slower", measured_s=156.0, expected=expected)
    assert after_judgement(Recommendation(first=1, keep_incumbent=keep, statement="Test it"), finding).first == first


def test_what_is_recomputed_need_not_be_said_for_all_settings_to_be_searched():
    ranked = rank_candidates(study("data=8 microbatches=1", "llama2-7b", "h100-8", 512, 4096, "PyTorch FSDP"), {})
    first = ranked.chosen[0]
    assert (ranked.study.plan.remat, first.plan.microbatches > 1) == (None, True)
    assert fit_odds(first.prediction) >= LIKELY > fit_odds(ranked.incumbent)


def test_precedents_speak_for_no_plan_that_may_not_fit():
    assert list(add_precedent([0.01, 0.01, -0.01], [0.1, 0.1, 0.1], [0.9, 0.96, 1.0])) == [0.01, 0.11, -0.01]
