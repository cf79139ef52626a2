from dataclasses import replace
from typing import get_args

import pytest

from asap.levers.lever import Run
from asap.levers.rematerialisation import policies
from asap.levers.table import LEVERS, ON_REQUEST, TRIALS, changed_levers
from asap.models import Workload, find_architecture
from asap.plans import Plan, Remat
from asap.stacks.launchers import Stack, launch_lines, settings_of
from asap.stacks.registry import contracts
from tests.cases import cases

find_lever = {lever.name: lever for lever in LEVERS}.__getitem__

WORK = Workload(global_batch=512, sequence_length=4096, framework="MaxText", precision="bf16", sequence_parallel=False)
NOW = Plan.parse("data=16 stage=2 microbatches=4 remat=full")


def run_of(plan=NOW, stack: Stack = "maxtext", work=WORK):
    return Run(plan, work, stack, xla=stack == "maxtext")


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_the_first_value_is_the_present_one_and_each_other_changes_this_lever_alone(lever):
    now = NOW.model_copy(update={"offload": ("parameters",)})
    present, *others = lever.values(run_of(now))
    assert present.change(now) == now
    assert others
    for value in others:
        assert changed_levers(value.change(now), now) == (lever,)


@pytest.mark.parametrize("stack", ["torchtitan", "axolotl"])
def test_fsdp_of_pytorch_moves_parameters_with_the_optimizer_both_ways(stack):
    lever = find_lever("offload")
    _, there = lever.values(run_of(stack=stack))
    assert set(there.change(NOW).offload) == {"optimizer", "parameters"}
    assert there.change(there.change(NOW)).offload == ()


def test_parameters_on_the_host_are_only_ever_brought_back():
    lever = find_lever("offload")
    assert len(lever.values(run_of())) == 2
    both = NOW.model_copy(update={"offload": ("optimizer", "parameters")})
    found = [value.change(both).offload for value in lever.values(run_of(both))]
    assert found == [("optimizer", "parameters"), ("parameters",), ("optimizer",), ()]


def test_maxtext_is_not_told_to_recompute_nothing_where_layers_are_scanned():
    run = run_of()
    unscanned, others = replace(run, settings={"scan_layers": "False"}), run_of(stack="torchtitan")
    assert [Remat.NONE in policies(each) for each in (run, unscanned, others)] == [False, True, True]


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
@pytest.mark.parametrize("stack", ["maxtext", "megatron", "bridge", "torchtitan"])
def test_a_stack_that_has_a_lever_can_say_each_of_its_values(lever, stack):
    if lever.name not in contracts()[stack].levers:
        assert len(lever.tried(run_of(stack=stack), frozenset(ON_REQUEST))) == 1
        return
    plan = (
        NOW if stack in ("maxtext", "torchtitan") else Plan.parse("replica=8 model=2 stage=2 microbatches=8 remat=full")
    )
    now = settings_of(plan, stack, global_batch=512, layers=32)
    for value in lever.values(run_of(plan, stack))[1:]:
        changed = value.change(plan)
        if value.sequences is not None:
            changed = plan.model_copy(update={"microbatches": 512 // (plan.batch_shards * value.sequences)})
        if changed != plan:
            said = launch_lines(changed, stack, now, global_batch=512, layers=32)
            assert said != launch_lines(plan, stack, now, global_batch=512, layers=32)


@pytest.mark.parametrize("name", ON_REQUEST)
def test_what_changes_numerics_is_tried_only_where_it_is_allowed(name):
    lever = find_lever(name)
    run = run_of(stack=next(stack for stack in get_args(Stack) if name in contracts()[stack].levers))
    assert len(lever.tried(run, frozenset())) == 1
    assert len(lever.tried(run, frozenset({name}))) > 1


def test_levers_are_read_back_from_a_plan_as_text():
    plan = Plan.parse("data=16 microbatches=2 remat=minimal loss_chunks=4 first_moment=bf16 offload=optimizer")
    assert Plan.parse(str(plan)) == plan
    assert {lever.name for lever in changed_levers(plan, Plan.parse("data=16"))} >= {"loss_chunks", "first_moment"}
    settings = launch_lines(plan, "maxtext", None)
    assert "num_vocab_tiling=4" in settings
    assert "mu_dtype=bfloat16" in settings


@cases("setting, stack, line")
def test_each_stack_has_its_own_line_for_a_lever(setting, stack, line):
    now = {"train_batch_size": 512} if stack == "deepspeed" else {}
    plan = Plan.parse(f"data=16 microbatches=1 {setting}")
    assert line in launch_lines(plan, stack, now, global_batch=512, layers=32)


def test_adam_alone_is_replaced_and_state_in_bf16_is_not_narrowed_again():
    assert len(find_lever("optimizer").values(run_of(work=WORK.model_copy(update={"optimizer": "muon"})))) == 1
    narrow = WORK.model_copy(update={"weight_precision": "bf16"})
    assert all(len(find_lever(name).values(run_of(work=narrow))) == 1 for name in ("first_moment", "second_moment"))


def test_larger_attention_blocks_are_offered_for_a_test_where_the_default_runs():
    (settings,) = (trial.settings for trial in TRIALS if trial.name == "attention_blocks")
    run = Run(NOW, WORK, "maxtext", xla=True, chip="v6e")
    assert settings(run)["sa_block_kv_dkv"] == "2048"
    assert not settings(replace(run, settings={"sa_block_q": 1024}))
    assert not settings(replace(run, chip="v5e"))
    assert not settings(replace(run, stack="megatron"))


def test_torch_compile_is_offered_where_it_is_off():
    (settings,) = (trial.settings for trial in TRIALS if trial.name == "torch_compile")
    run = Run(NOW, WORK.model_copy(update={"compiled": False}), "torchtitan", xla=False)
    assert settings(run) == {"compile.enable": "true"}
    earlier = replace(run, settings={"training.compile": False})
    assert settings(earlier) == {"training.compile": "true"}
    assert not settings(replace(run, workload=WORK.model_copy(update={"compiled": True})))
    assert not settings(replace(run, workload=WORK))
    assert not settings(replace(run, stack="megatron"))
    assert not settings(replace(run, settings={"primus_module": "pre_trainer"}))


GRAPHED = Workload(global_batch=512, sequence_length=4096, precision="bf16", framework="Megatron-Core")
EAGER = replace(run_of(NOW.model_copy(update={"remat": Remat.NONE}), "megatron", GRAPHED), settings={})


@cases("trial, needed, setting, refused")
def test_cuda_graphs_are_offered_where_megatron_core_takes_them(trial, needed, setting, refused):
    (settings,) = (each.settings for each in TRIALS if each.name == trial)
    run = replace(EAGER, settings=needed)
    assert tuple(setting) in settings(run).items()
    assert not settings(replace(run, stack="maxtext"))
    assert not settings(replace(run, plan=run.plan.model_copy(update={"remat": Remat.FULL})))
    for said in refused:
        work = run.workload.model_copy(update={k: v for k, v in said.items() if k in Workload.model_fields})
        assert not settings(replace(run, workload=work, settings=needed | said))


def test_cuda_graphs_of_layers_need_attention_without_dropout_where_it_is_recomputed():
    (settings,) = (each.settings for each in TRIALS if each.name == "cuda_graphs_of_layers")
    selective = replace(EAGER, plan=EAGER.plan.model_copy(update={"remat": Remat.SELECTIVE}))
    assert not settings(selective)
    assert settings(replace(selective, settings={"attention_dropout": "0.0"}))


@pytest.mark.parametrize("name", ["cuda_graphs_of_layers", "tensor_overlap"])
def test_what_layers_of_experts_cannot_take_is_not_offered_where_only_the_model_says_so(name):
    (settings,) = (each.settings for each in TRIALS if each.name == name)
    split = Plan.parse("data=4 model=4 remat=none")
    run = replace(EAGER, plan=split, workload=GRAPHED.model_copy(update={"sequence_parallel": True}))
    assert settings(run)
    assert not settings(replace(run, model=find_architecture("mixtral-8x7b")))
