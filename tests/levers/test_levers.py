import pytest

from asap.levers.lever import Run
from asap.levers.table import LEVERS, ON_REQUEST, changed_levers, find_lever
from asap.models import Workload
from asap.plans import Plan
from asap.plans.launchers import launch_lines, settings_of

WORK = Workload(global_batch=512, sequence_length=4096, framework="MaxText", precision="bf16")
NOW = Plan.parse("data=16 stage=2 microbatches=4 remat=full")


def run_of(plan=NOW, stack="maxtext", work=WORK):
    return Run(plan, work, stack, xla=stack == "maxtext")


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_the_first_value_is_the_present_one_and_each_other_changes_this_lever_alone(lever):
    present, *others = lever.values(run_of())
    assert present.change(NOW) == NOW
    assert others
    for value in others:
        assert changed_levers(value.change(NOW), NOW) == (lever,)


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
@pytest.mark.parametrize("stack", ["maxtext", "megatron"])
def test_a_stack_that_has_a_lever_can_say_each_of_its_values(lever, stack):
    if stack not in lever.said_by:
        assert len(lever.tried(run_of(stack=stack), frozenset(ON_REQUEST))) == 1
        return
    plan = Plan.parse("replica=8 model=2 stage=2 microbatches=8 remat=full") if stack == "megatron" else NOW
    now = settings_of(plan, stack, global_batch=512, layers=32)
    for value in lever.values(run_of(plan, stack))[1:]:
        changed = value.change(plan)
        if value.sequences is not None:
            changed = plan.model_copy(update={"microbatches": 512 // (plan.batch_shards * value.sequences)})
        if changed != plan:
            assert launch_lines(changed, stack, now, global_batch=512, layers=32)


@pytest.mark.parametrize("name", ON_REQUEST)
def test_what_changes_numerics_is_tried_only_where_it_is_allowed(name):
    lever = find_lever(name)
    assert len(lever.tried(run_of(), frozenset())) == 1
    assert len(lever.tried(run_of(), frozenset({name}))) > 1


def test_levers_are_read_back_from_a_plan_as_text():
    plan = Plan.parse("data=16 microbatches=2 remat=minimal loss_chunks=4 first_moment=bf16 offload=optimizer")
    assert Plan.parse(str(plan)) == plan
    assert {lever.name for lever in changed_levers(plan, Plan.parse("data=16"))} >= {"loss_chunks", "first_moment"}
    settings = launch_lines(plan, "maxtext", None)
    assert "num_vocab_tiling=4" in settings
    assert "mu_dtype=bfloat16" in settings
