"""Recomputation of single modules, or of a share of the layers, in the words of the stacks that have it."""

from fractions import Fraction

import pytest

from asap.core.errors import PlanError
from asap.plans import Plan, Remat
from asap.plans.remat import (
    RecomputedLayers,
    RecomputedModules,
    read_policy,
    recomputed_layers,
    recomputed_modules,
    recomputed_tensors,
)
from asap.plans.validity import Constraints, violations
from asap.stacks.launchers import inexpressible, launch_lines
from asap.stacks.megatron.stages import remat_of
from asap.stacks.torchtitan import settings as torchtitan
from asap.stacks.torchtitan.stack import PYTHON
from tests.cases import cases

SELECTIVE = {"recompute_granularity": "selective"}
BLOCK = {"recompute_granularity": "full", "recompute_method": "block"}
DENSE = {"tensor_model_parallel_size": "2", "micro_batch_size": "1", "global_batch_size": "32", "num_layers": "48"}


def line(plan: str, stack: str = "megatron", layers: int | None = 48, **beside: object) -> str:
    return launch_lines(Plan.parse(plan), stack, DENSE | beside, global_batch=32, layers=layers)


def refusal(plan: str, stack: str = "megatron", **beside: object) -> str | None:
    return inexpressible(Plan.parse(plan), stack, DENSE | beside, 32, 48)


@pytest.mark.parametrize(("said", "policy"), [
    ({}, Remat.SELECTIVE), ({"recompute_modules": "core_attn"}, Remat.SELECTIVE),
    ({"recompute_modules": ["moe_act", "layernorm"]}, RecomputedModules(("layernorm", "moe_act"))),
    ({"recompute_modules": "mlp layernorm moe"}, RecomputedModules(("layernorm", "mlp", "moe"))),
    ({"recompute_modules": "core_attn mlp"}, RecomputedModules(("core_attn", "mlp"))),
    ({"recompute_modules": []}, Remat.NONE), ({"recompute_modules": "of_a_fork"}, Remat.SELECTIVE),
])  # fmt: skip
def test_megatron_names_the_modules_that_it_recomputes(said, policy):
    assert remat_of(SELECTIVE | said) == policy


@cases("count, layers, chunks, policy")
def test_a_block_is_so_many_layers_of_each_virtual_stage(count, layers, chunks, policy):
    assert remat_of(BLOCK | {"recompute_num_layers": count}, layers, chunks) == read_policy(policy)


def test_lines_say_modules_as_each_launcher_takes_them():
    plan = "replica=4 model=2 remat=selective.layernorm+moe_act"
    modules = {"moe_grouped_gemm": True, "num_experts": "8", "sequence_parallel": True}
    assert "--recompute-modules layernorm moe_act  # recompute-modules since Megatron Core" in line(plan, **modules)
    assert "virtual-pipeline-stage 6 " in line("replica=2 stage=4 microbatches=4 pipeline_repeats=2")
    assert "++model.recompute_modules=[layernorm,moe_act]" in line(plan, "bridge", **modules).split()
    assert line("replica=4 model=2 remat=selective", **SELECTIVE, recompute_modules="mlp").startswith("# without")


def test_lines_count_the_layers_of_a_virtual_stage():
    half = "replica=2 model=2 stage=4 microbatches=16 remat=full.1/2"
    words = "--recompute-granularity full --recompute-method block --recompute-num-layers"
    assert f"{words} 6" in line(half)
    assert f"{words} 3" in line(f"{half} pipeline_repeats=2")
    assert not line(half, **BLOCK, recompute_num_layers="6", pipeline_model_parallel_size="4")
    with pytest.raises(PlanError, match="no whole number of the 50 layers"):
        line("replica=4 model=2 remat=full.3/4", layers=50)
    with pytest.raises(PlanError, match="is not known"):
        line("replica=4 model=2 remat=full.3/4", layers=None)


def test_a_plan_whose_stages_have_no_such_part_cannot_run_under_megatron():
    plan = Plan.parse("stage=8 microbatches=8 remat=full.1/4")
    broken = violations(plan, Constraints(layers=48, counted_layers=48))
    assert [violation.rule for violation in broken] == ["recomputed_layers"]
    assert not violations(plan, Constraints(layers=64, counted_layers=64))
    assert not violations(plan, Constraints(layers=48))


@cases("plan, beside, said")
def test_what_megatron_core_refuses_beside_them(plan, beside, said):
    refused = refusal(f"model=2 {plan}", **beside)
    assert said in refused


def test_stacks_without_them_say_so():
    for stack in ("maxtext", "nanotron", "axolotl", "accelerate"):
        for policy in ("selective.mlp", "full.1/2"):
            assert inexpressible(Plan.parse(f"data=8 remat={policy}"), stack, {}, 32, 32) is not None, stack
    assert "no other modules" in str(refusal("replica=4 model=2 remat=selective.mlp", "nemo"))
    assert refusal("replica=4 model=2 remat=full.1/2", "nemo") is None


def test_torchtitan_recomputes_every_nth_layer():
    said = {"activation_checkpoint.mode": "selective", "activation_checkpoint.selective_ac_option": "3"}
    assert torchtitan.remat_of(said) == RecomputedLayers(Fraction(1, 3))
    assert torchtitan.remat_of({**said, "activation_checkpoint.selective_ac_option": "1"}) is Remat.FULL
    half = Plan.parse("data=8 remat=full.1/2")
    assert 'selective_ac_option = "2"' in launch_lines(half, "torchtitan", said, global_batch=8, layers=32)
    assert inexpressible(Plan.parse("data=8 remat=full.2/3"), "torchtitan", said, 8, 32) is not None
    assert inexpressible(half, "torchtitan", {PYTHON: True}, 8, 32) is not None
    assert inexpressible(half, "torchtitan", {}, 8, 32) is None


def test_they_lie_between_nothing_and_everything():
    amounts = [Remat.NONE, recomputed_modules(["moe_act"]), recomputed_modules(["layernorm", "mlp"]), Remat.FULL]
    assert sorted(amounts, key=recomputed_tensors) == amounts
    shares = [recomputed_layers(Fraction(share, 4)) for share in range(5)]
    assert sorted(shares, key=recomputed_tensors) == shares
    assert (shares[0], shares[4]) == (Remat.NONE, Remat.FULL)


@pytest.mark.parametrize("text", ["full.0/2", "full.3/2", "full.1", "full.1/x", "selective.", "selective.mlp+mlp"])
def test_no_such_policy(text):
    with pytest.raises(PlanError, match=r"remat cannot be .*(full\.1/2|core_attn, layernorm)"):
        Plan.parse(f"data=8 remat={text}")
