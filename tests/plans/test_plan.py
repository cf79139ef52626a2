import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import PlanError
from asap.plans import AXES, Mesh, Plan, Remat
from asap.plans.remat import MODULES, SavedTensors, recomputed_layers, recomputed_modules
from tests.cases import kept

degrees = st.integers(min_value=1, max_value=64)
meshes = st.builds(Mesh, **dict.fromkeys(AXES, degrees))
policies = (
    st.sampled_from([*Remat, SavedTensors(("key", "up"), ("query",)), SavedTensors(("context",))])
    | st.sets(st.sampled_from(MODULES)).map(recomputed_modules)
    | st.fractions(0, 1, max_denominator=96).map(recomputed_layers)
)
plans = st.builds(
    Plan, ici=meshes, dcn=meshes, microbatches=st.none() | degrees, pipeline_repeats=degrees,
    remat=st.none() | policies,
    offload=st.lists(st.sampled_from(["optimizer", "parameters", "activations"]), unique=True).map(tuple),
)  # fmt: skip


@given(plans)
def test_the_text_form_and_the_json_read_back(plan):
    assert Plan.parse(str(plan)) == plan
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@given(plans)
def test_devices_are_the_product_over_both_networks(plan):
    product = 1
    for axis in AXES:
        product *= plan.degree(axis)
    assert plan.devices == product


def test_a_launcher_dictionary_reads_as_a_plan():
    assert Plan.parse("{'model': 8, 'data': 16, 'seq': 4}") == Plan.parse("data=16 seq=4 model=8")
    assert Plan.parse("tp8 pp4, dp2") == Plan.parse("tp8pp4dp2") == Plan.parse("model=8 stage=4 dp=2")


@pytest.mark.parametrize("text", [*kept(__file__)["test_what_is_not_a_plan_is_refused"], "data=2 " * 200])
def test_what_is_not_a_plan_is_refused(text):
    with pytest.raises(PlanError) as caught:
        Plan.parse(text)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_a_plan_or_a_plan_error(text):
    try:
        plan = Plan.parse(text)
    except PlanError:
        return
    assert Plan.parse(str(plan)) == plan


def test_tensors_that_make_a_named_policy_are_that_policy():
    assert Plan.parse("remat=value+key+query").remat is Remat.SAVE_QKV_PROJ
    assert str(Plan.parse("remat=host.query+up+key")) == "remat=key+up+host.query"
    for text in ("key+key", "key+mlpwo", "host.", "key+"):
        with pytest.raises(PlanError, match="remat cannot be"):
            Plan.parse(f"remat={text}")


def test_a_plan_beside_another_keeps_what_it_takes_back():
    now = Plan.parse("data=8 stage=2 pipeline_repeats=4 remat=full offload=optimizer+parameters")
    there = Plan.parse("data=8 stage=2 remat=none")
    assert there.completed_by(now).offload
    text = there.beside(now)
    assert text == "data=8 stage=2 remat=none offload=none pipeline_repeats=1"
    back = Plan.parse(text).completed_by(now)
    assert (back.offload, back.pipeline_repeats, back.remat) == ((), 1, there.remat)
    assert now.beside(now) == str(now)
    assert there.beside(None) == str(there)
