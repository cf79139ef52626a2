"""One grammar for every vocabulary in which a plan is written."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from asap.core.errors import PlanError
from asap.plans import AXES, Mesh, Plan, Remat
from asap.plans.axes import KEYS, MESH_NAMES, WORDS, axis_of
from asap.plans.prose import plans_written
from asap.plans.text import data_note
from tests.cases import cases

degrees = st.integers(min_value=1, max_value=512)


@cases("text, plan")
def test_each_vocabulary_says_the_same_plan(text, plan):
    assert Plan.parse(text) == Plan.parse(plan)


def test_data_is_fsdp_alone_and_plain_data_parallelism_beside_fsdp():
    assert Plan.parse("data=8 model=2").ici == Mesh(data=8, model=2)
    assert Plan.parse("data=2 fsdp=8").ici == Mesh(replica=2, data=8)
    assert Plan.parse("data=2 fsdp=8 dcn.data=4").dcn == Mesh(replica=4)


@cases("text, replicas, said")
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


@given(st.dictionaries(st.sampled_from([*MESH_NAMES]), degrees))
def test_maxtext_keys_read_back(mesh):
    text = " ".join(f"ici_{MESH_NAMES[axis][0]}_parallelism={degree}" for axis, degree in mesh.items())
    if mesh:
        assert Plan.parse(text).ici == Mesh(**mesh)


@pytest.mark.parametrize(
    "word", [*WORDS, *KEYS, *(f"ici_{n}_parallelism" for names in MESH_NAMES.values() for n in names)]
)
def test_every_word_is_an_axis(word):
    place = axis_of(word)
    assert place[1] in AXES
    assert Plan.parse(f"{word}=2").devices == 2


@cases("prose, plan")
def test_plans_are_found_in_prose(prose, plan):
    written = plans_written(prose)
    together = " ".join(str(one) for one in written if str(one) != "data=1")
    assert Plan.parse(together) == Plan.parse(plan) if plan != "remat=full" else written[0].remat is Remat.FULL


@given(st.text(max_size=80))
def test_any_prose_is_plans_or_a_plan_error(prose):
    with suppress(PlanError):
        assert all(isinstance(plan, Plan) for plan in plans_written(prose))
