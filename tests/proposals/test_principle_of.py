"""What is said of a change holds for the two plans."""

import pytest

from asap.plans import Plan
from asap.proposals.selection.strategy import changes, title
from tests.cases import cases


def said(before: str, after: str) -> str:
    (change,) = changes(Plan.parse(after), Plan.parse(before))
    return f"{change.principle.reason}; {change.principle.trade_off}; {change.principle.note}"


@pytest.mark.parametrize(("before", "after"), [("2", "4"), ("4", "2")])
@cases("degrees, gathered, bubble")
def test_weights_are_gathered_only_where_they_are_sharded_and_only_pipelines_have_a_bubble(
    degrees, gathered, bubble, before, after
):
    text = said(f"{degrees} microbatches={before}", f"{degrees} microbatches={after}")
    assert ("gathered" in text) is gathered
    assert ("bubble" in text) is bubble


def test_less_tensor_parallelism_gathers_more_only_over_sharded_weights():
    replicas, sharded = (
        changes(Plan.parse(f"{axis}=8"), Plan.parse(f"{axis}=4 model=2")) for axis in ("replica", "data")
    )
    assert "over the data axis" not in replicas[-1].principle.trade_off
    assert "over the data axis" in sharded[-1].principle.trade_off


def test_recomputation_of_attention_alone_has_a_note_of_its_own():
    assert said("replica=8 remat=selective", "replica=8 remat=none").endswith("transformers-remat-attention-extra")
    assert said("replica=8 remat=none", "replica=8 remat=selective").endswith("transformers-remat-attention-extra")
    assert said("replica=8 remat=full", "replica=8 remat=none").endswith("transformers-block-remat")


@cases("before, after, reason, trade_off")
def test_where_activations_wait_is_said_as_it_is(before, after, reason, trade_off):
    (change,) = changes(Plan.parse(f"data=8 remat={after}"), Plan.parse(f"data=8 remat={before}"))
    assert reason in change.principle.reason
    assert trade_off in change.principle.trade_off


@cases("before, after, words")
def test_a_title_says_where_activations_go_and_what_is_computed_again(before, after, words):
    assert title(Plan.parse(f"data=8 remat={after}"), Plan.parse(f"data=8 remat={before}")).startswith(words)


@cases("after, size")
def test_more_microbatches_are_smaller_only_where_a_device_trains_no_more_of_the_batch(after, size):
    found = changes(Plan.parse(after), Plan.parse("replica=16 microbatches=4"))
    (principle,) = (each.principle for each in found if each.axis == "microbatches")
    assert size in f"{principle.reason}; {principle.trade_off}"
