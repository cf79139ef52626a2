import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import PlanError
from asap.mapping.check import check
from asap.mapping.language.format import format_program
from asap.mapping.language.grammar import STATES
from asap.mapping.language.parse import parse
from asap.mapping.plan_program import beyond_plan, plan_of, plan_program, plan_text
from asap.plans import Mesh, Plan, Remat
from asap.plans.enumeration import enumerate_plans
from asap.plans.remat import SavedTensors
from asap.plans.validity import Constraints
from tests.mapping.programs import DENSE, SLICE

DEGREES = st.integers(1, 64)
MESHES = st.builds(Mesh, replica=DEGREES, data=DEGREES, seq=DEGREES, model=DEGREES, expert=DEGREES, stage=DEGREES)
KEPT = st.sampled_from(["key+host.query", "host.out", "up", "qkv+context", "out+host.qkv"]).map(SavedTensors.parse)
OFFLOADED = st.sets(st.sampled_from(STATES)).map(lambda found: tuple(state for state in STATES if state in found))
PLANS = st.builds(
    Plan, ici=MESHES, dcn=MESHES, microbatches=st.none() | DEGREES, pipeline_repeats=DEGREES,
    remat=st.none() | st.sampled_from(Remat) | KEPT, offload=OFFLOADED, loss_chunks=st.none() | DEGREES,
    first_moment=st.none() | st.sampled_from(["fp32", "bf16"]),
)  # fmt: skip


@given(PLANS)
def test_a_plan_is_a_program_both_ways(plan):
    program = plan_program(plan)
    assert plan_of(program) == plan
    assert beyond_plan(program) == ()
    assert format_program(program) == plan_text(plan)


def test_every_valid_plan_of_a_model_passes_the_checks():
    constraints = Constraints(16, 1, 64, 4096, 64, 8, 0, 80)
    plans = enumerate_plans(constraints)
    assert len(plans) > 30
    for plan in plans:
        assert check(plan_text(plan), DENSE, SLICE).feedback == ()


def test_what_a_plan_does_not_say_is_told():
    program, _ = parse(
        "mesh data=16\nremat full\nremat minimal in layers 0..3\nshard query by embed over none\norder fold"
    )
    assert plan_of(program) == Plan.parse("data=16 remat=full")
    assert [decision.at.line for decision in beyond_plan(program)] == [3, 4, 5]


@pytest.mark.parametrize(("text", "reason"), [("remat full", "no line says the mesh"), ("mesh x=4", "no axis x")])
def test_a_program_without_the_axes_of_a_plan_has_no_plan(text, reason):
    with pytest.raises(PlanError, match=reason):
        plan_of(parse(text)[0])
