"""Pipelines whose stages do not divide the layers: which launchers take them, and what they are told."""

import pytest

from asap.core.errors import PlanError
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.enumeration import enumerate_plans
from asap.plans.validity import violations
from asap.proposals.launch import launcher_line
from asap.stacks.constraints import constraints_of
from asap.stacks.launchers import Stack, launch_lines
from asap.study.study import study_of
from tests.cases import cases
from tests.experiments.stack_configurations import MEGATRON

NOW = {"pipeline_model_parallel_size": "8", "micro_batch_size": "1", "global_batch_size": "64"}
ENDS = {"decoder_first_pipeline_num_layers": "7", "decoder_last_pipeline_num_layers": "6"}


def broken(plan: str, framework: str, layers: int = 61) -> list[str]:
    workload, parsed = Workload(framework=framework), Plan.parse(plan)
    constraints = constraints_of(Architecture(layers=layers), workload, parsed.devices)
    return [violation.rule for violation in violations(parsed, constraints)]


def line(plan: str, current: dict, stack: Stack = "megatron", layers: int = 61) -> str:
    return launch_lines(Plan.parse(plan), stack, current, global_batch=64, layers=layers)


@cases("framework, plan, rules")
def test_the_last_stage_may_hold_fewer_layers(framework, plan, rules):
    assert broken(plan, framework) == rules


def test_what_is_enumerated_has_a_layer_for_each_stage():
    model = Architecture(layers=94)
    found = enumerate_plans(constraints_of(model, Workload(framework="Megatron-Core"), 64), ("replica", "stage"))
    assert {plan.degree("stage") for plan in found} == {1, 2, 4, 8, 16, 32}


@cases("stack, words")
def test_the_launcher_is_told_what_the_last_stage_holds(stack, words):
    assert words in line("replica=2 stage=16 microbatches=32", NOW, stack)
    assert "last" not in line("replica=2 stage=16 microbatches=32", NOW, stack, layers=64)


def test_ends_on_record_give_way_to_those_of_other_stages():
    said, _, without = line("replica=2 stage=16 microbatches=32", NOW | ENDS).partition("# without")
    assert "--decoder-last-pipeline-num-layers 1" in said
    assert without.split() == ["--decoder-first-pipeline-num-layers"]
    of_core = {"num_layers_in_first_pipeline_stage": 7, "num_layers_in_last_pipeline_stage": 6}
    words = line("replica=2 stage=16 microbatches=32", NOW | of_core, "bridge")
    assert "num_layers_in_first_pipeline_stage=null" in words
    assert "num_layers_in_last_pipeline_stage=1" in words


def test_a_launcher_without_such_stages_is_told_nothing():
    for current in (NOW | {"use_legacy_models": True}, NOW | {"deepspeed": True}):
        with pytest.raises(PlanError, match="layers"):
            line("replica=2 stage=16 microbatches=32", current)


@cases("words, valid")
def test_stages_on_record_are_judged_as_the_core_does(read, words, valid):
    stages = f"--pipeline-model-parallel-size 8 {words}"
    text = MEGATRON.replace("--num-layers 32", "--num-layers 61").replace("--pipeline-model-parallel-size 2", stages)
    run = read("train.sh", text, hardware="h100-64")
    assert run.plan.degree("stage") == 8
    study = study_of(run)
    assert any("breaks a rule" in warning for warning in study.warnings) != valid
    if valid:
        assert "pipeline" not in launcher_line(study, run.plan.model_copy(update={"remat": None}))
