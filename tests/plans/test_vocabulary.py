"""One grammar for every vocabulary in which a plan is written."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from asap.core.errors import PlanError
from asap.plans import AXES, Mesh, Plan, Remat
from asap.plans.axes import KEYS, MAXTEXT, WORDS, axis_of
from asap.plans.prose import plans_written
from asap.plans.text import data_note

degrees = st.integers(min_value=1, max_value=512)


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("fsdp=16 tensor=8 context=2", "data=16 model=8 seq=2"),
        ("TP=8, PP=4, DP=2", "replica=2 model=8 stage=4"),
        ("dp=2 cp=4 ep=8", "replica=2 seq=4 expert=8"),
        ("ici_fsdp_parallelism=16 ici_tensor_parallelism=4 dcn_data_parallelism=2", "data=16 model=4 dcn.replica=2"),
        ("ici_data_parallelism=8", "replica=8"),
        ("--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4", "model=8 stage=4"),
        ("--context-parallel-size=2", "seq=2"),
        ("data_parallel_replicate_degree = 2 data_parallel_shard_degree = 8", "replica=2 data=8"),
        ("dcn.fsdp=2 fsdp=8", "dcn.data=2 data=8"),
        ("fsdp=64 remat_policy=minimal_with_context", "data=64 remat=minimal"),
        ("fsdp=8 num_pipeline_microbatches=4", "data=8 microbatches=4"),
    ],
)
def test_each_vocabulary_says_the_same_plan(text, plan):
    assert Plan.parse(text) == Plan.parse(plan)


def test_data_is_fsdp_alone_and_plain_data_parallelism_beside_fsdp():
    assert Plan.parse("data=8 model=2").ici == Mesh(data=8, model=2)
    assert Plan.parse("data=2 fsdp=8").ici == Mesh(replica=2, data=8)
    assert Plan.parse("data=2 fsdp=8 dcn.data=4").dcn == Mesh(replica=4)


@pytest.mark.parametrize(
    ("text", "replicas", "said"),
    [
        ("data=8", 1, None),
        ("data=8 model=4", 1, None),
        ("data=8 tensor=4", 1, "data is FSDP here"),
        ("data=8", 8, "data is FSDP here"),
        ("fsdp=8 data=2", 8, None),
        ("dcn.data=2 context=4", 1, "is dcn.replica"),
        ("ici_data_parallelism=8", 8, None),
        ("replica=8 data=2", 8, None),
    ],
)
def test_what_data_was_taken_for_is_said_where_it_could_be_mistaken(text, replicas, said):
    note = data_note(text, replicas)
    assert (note is None) if said is None else (note is not None and said in note)


def test_json_takes_the_standard_words():
    plan = Plan.model_validate({"ici": {"fsdp": 16, "tensor": 4, "data": 2}, "dcn": {"dp": 2}})
    assert plan == Plan.parse("replica=2 data=16 model=4 dcn.replica=2")
    with pytest.raises(ValidationError, match="model is given twice, once as tensor"):
        Mesh.model_validate({"tp": 2, "tensor": 4})
    with pytest.raises(ValidationError, match="shards"):
        Mesh.model_validate({"shards": 2})


def test_an_axis_given_in_two_words_names_both():
    with pytest.raises(PlanError, match=r"model is given twice \(tp and tensor\)"):
        Plan.parse("tp=4 tensor=4")


def test_an_unknown_axis_lists_the_axes_with_their_meaning():
    with pytest.raises(PlanError, match="data \\(FSDP\\)"):
        Plan.parse("shards=4")


@given(st.dictionaries(st.sampled_from([*MAXTEXT]), degrees))
def test_maxtext_keys_read_back(mesh):
    text = " ".join(f"ici_{MAXTEXT[axis][0]}_parallelism={degree}" for axis, degree in mesh.items())
    if mesh:
        assert Plan.parse(text).ici == Mesh(**mesh)


@pytest.mark.parametrize(
    "word", [*WORDS, *KEYS, *(f"ici_{n}_parallelism" for names in MAXTEXT.values() for n in names)]
)
def test_every_word_is_an_axis(word):
    place = axis_of(word)
    assert place is not None
    assert place[1] in AXES
    assert Plan.parse(f"{word}=2").devices == 2


@pytest.mark.parametrize(
    ("prose", "plan"),
    [
        ("why not tp=8 with fsdp=8?", "data=8 model=8"),
        ("what about tp8 pp4", "model=8 stage=4"),
        ("use ici_fsdp_parallelism=64 and ici_tensor_parallelism=4", "data=64 model=4"),
        ("with remat_policy=full", "remat=full"),
    ],
)
def test_plans_are_found_in_prose(prose, plan):
    written = plans_written(prose)
    together = " ".join(str(one) for one in written if str(one) != "data=1")
    assert Plan.parse(together) == Plan.parse(plan) if plan != "remat=full" else written[0].remat is Remat.FULL


@given(st.text(max_size=80))
def test_any_prose_is_plans_or_a_plan_error(prose):
    with suppress(PlanError):
        assert all(isinstance(plan, Plan) for plan in plans_written(prose))
