"""What is offered where it is not allowed, or where nothing fits."""

import re

import pytest

from asap.proposals.options import options
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.recommend import add_options, recommend
from tests.cases import cases
from tests.proposals.test_situations import proposed
from tests.studies import study as run


@pytest.mark.parametrize(("factor", "named"), [(None, True), (1.0, False)])
def test_near_the_limit_it_is_said_that_experts_may_get_more_than_their_share(factor, named):
    study = run(
        "expert=16 microbatches=64 remat=none", "qwen3-30b-a3b", "h100-16", 1024, 6144, "Megatron-Core",
        zero_stage=1, attention="flash", capacity_factor=factor,
    )  # fmt: skip
    statement = proposed(study).situation.statement
    assert ("Near the limit of HBM" in statement, "evenly over the experts" in statement) == (True, named)


def test_where_nothing_fits_more_chips_and_other_numerics_are_named():
    study = run("data=16 remat=full", "llama2-70b", "v5e-16", 64, 4096)
    ranked = rank_candidates(study, priors={})
    found = propose(ranked, lambda study, plan: ())
    assert (found.proposals, found.recommendation.first, found.recommendation.keep_incumbent) == ((), None, False)
    statements = [option.statement for option in options(study, ranked.incumbent)]
    assert any(" chips" in statement and "fits" in statement for statement in statements)


@pytest.mark.parametrize(("framework", "first"), [("Accelerate FSDP", "setting"), ("torchtitan", None)])
def test_whole_gradients_are_sharded_before_anything_else_is_changed(framework, first):
    study = run("data=64 microbatches=4 remat=full", "llama2-70b", "h100-64", 256, 4096, framework)
    ranked = rank_candidates(study, priors={})
    offered = options(study, ranked.incumbent)
    assert next((option.changes for option in offered if option.changes == "setting"), None) == first
    if first:
        assert not ranked.incumbent.memory.fits
        assert re.search(r"sync_each_batch: true.* what runs now fits, with \d+\.\d GiB of 80", offered[0].statement)
        kept = recommend((), ranked.considered)
        assert "sharded in every microbatch" in add_options(kept, offered).statement
        assert add_options(kept, offered[1:]) == kept


@pytest.mark.parametrize(("batch", "microbatches"), [(256, 4), (16, 1)])
def test_sharded_gradients_are_offered_where_their_room_makes_something_faster(batch, microbatches):
    plan = f"data=16 microbatches={microbatches} remat=full"
    study = run(plan, "llama2-13b", "h100-16", batch, 4096, "Accelerate FSDP", attention="flash")
    ranked = rank_candidates(study, priors={})
    assert ranked.incumbent.memory.fits
    offered = options(study, ranked.incumbent)
    found = [option for option in offered if option.changes == "setting"]
    assert [option.tokens_per_second > 1 for option in found] == ([True] if microbatches > 1 else [])
    assert add_options(kept := recommend((), ranked.considered), offered) == kept


@pytest.mark.filterwarnings("error")
def test_a_smaller_batch_that_is_slower_for_each_sequence_is_no_option():
    study = run("replica=8 microbatches=16 remat=none", "llama3.1-8b", "h100-8", 128, 8192, "Megatron-LM")
    ranked = rank_candidates(study, priors={})
    assert not ranked.incumbent.memory.fits
    assert {option.changes for option in options(study, ranked.incumbent)} & {"chips", "batch"} == {"chips"}


@cases("hardware, framework, narrow")
def test_products_in_a_narrower_precision_are_those_that_the_kind_of_chip_trains_in(hardware, framework, narrow):
    study = run("data=8 remat=full", hardware=hardware, batch=16, sequence=2048, framework=framework)
    now = rank_candidates(study, priors={}).incumbent
    said = [option.statement for option in options(study, now) if option.changes == "numerics"]
    assert len(said) == (narrow is not None)
    assert all(narrow in statement for statement in said)


def test_an_option_is_faster_than_what_runs_though_its_layers_do_not_divide_over_the_stages():
    study = run(
        "replica=2 expert=8 stage=16 microbatches=128 pipeline_repeats=2 remat=full", "deepseek3-671b", "mi355x-256",
        4096, 4096, "Megatron-Core", zero_stage=1,
    )  # fmt: skip
    found = options(study, rank_candidates(study, priors={}).incumbent)
    assert [option.changes for option in found][:1] == ["numerics"]
    assert all(option.tokens_per_second > 1 and " more tokens/s" in option.statement for option in found)
    assert all(option.plan == study.plan or str(option.plan) in option.statement for option in found)
