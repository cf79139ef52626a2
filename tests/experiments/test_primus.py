"""Primus's YAML: its backends with usual defaults of their presets, and variables of the environment."""

import re

import pytest
import yaml

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines, stack_of
from tests.cases import cases, kept

EXPERIMENT = kept(__file__)["EXPERIMENT"]
MEGATRON = """{seq_length: "${PRIMUS_SEQ_LENGTH:8192}", micro_batch_size: 2, global_batch_size: 128,
        tensor_model_parallel_size: "${PRIMUS_TP:2}", recompute_granularity: full, recompute_method: uniform,
        recompute_num_layers: 1, fp8: hybrid, lr_decay_iters: null}"""
TITAN = "{sink_level: null, training: {local_batch_size: 6, seq_len: 8192}, parallelism: {tensor_parallel_degree: 2}}"
TINY = "num_layers: 4, hidden_size: 512, num_attention_heads: 8, global_batch_size: 16"


def experiment(framework: str, model: str, overrides: str) -> str:
    return EXPERIMENT.format(framework=framework, model=model, overrides=overrides)


def pasted(line: str) -> dict:
    return yaml.safe_load(line)["modules"]["pre_trainer"]["overrides"]


def test_megatron_alone_has_the_model_of_its_presets_name_and_the_defaults_of_primus(read):
    run = read("run.yaml", experiment("megatron", "llama3.1_8B.yaml", MEGATRON), hardware="mi300x-8")
    assert (run.model.layers, run.workload.sequence_length, run.workload.precision) == (32, 8192, "fp8")
    assert str(run.plan) == "replica=4 model=2 microbatches=16 remat=full"
    assert (run.workload.zero_stage, run.workload.sequence_parallel, stack_of(run.workload.framework)) == (
        1, True, "megatron",
    )  # fmt: skip
    assert any("presets of Primus (primus/configs) are not read" in note for note in run.notes)
    assert any("defaults: seq_length=8192, tensor_model_parallel_size=2" in note for note in run.notes)
    plan = Plan.parse("replica=8 microbatches=4 remat=none")
    line = launch_lines(plan, "megatron", run.hyperparameters, global_batch=128, layers=32)
    assert line.splitlines()[:3] == ["modules:", "  pre_trainer:", "    overrides:"]
    assert pasted(line) == {
        "tensor_model_parallel_size": 1, "micro_batch_size": 4, "recompute_granularity": None,
        "recompute_method": None, "recompute_num_layers": None,
    }  # fmt: skip


def test_torchtitan_keeps_everything_unless_it_is_told_to_recompute(read):
    run = read("run.yaml", experiment("torchtitan", "llama3.1_70B-fp8.yaml", TITAN), hardware="mi355x-8")
    assert (run.model.layers, str(run.plan)) == (80, "data=4 model=2 microbatches=1 remat=none")
    assert (run.workload.global_batch, stack_of(run.workload.framework)) == (24, "torchtitan")
    line = launch_lines(
        Plan.parse("data=8 microbatches=1 remat=full"), "torchtitan", run.hyperparameters, global_batch=24
    )
    assert pasted(line) == {
        "parallelism": {"tensor_parallel_degree": 1},
        "training": {"local_batch_size": 3},
        "activation_checkpoint": {"mode": "full"},
    }


def test_maxtext_has_the_model_and_the_recomputation_of_its_presets_and_lines_for_its_module(read):
    said = "{per_device_batch_size: 4, max_target_length: 8192, ici_fsdp_parallelism: -1}"
    run = read("run.yaml", experiment("maxtext", "llama3_8B.yaml", said), hardware="mi300x-8")
    assert (run.model.layers, run.workload.global_batch, str(run.plan)) == (32, 32, "data=8 microbatches=1 remat=full")
    line = launch_lines(Plan.parse("data=4 model=2 remat=minimal"), "maxtext", run.hyperparameters, global_batch=32)
    assert pasted(line)["ici_tensor_parallelism"] == 2


@cases("framework, model, overrides, said")
def test_what_is_not_read_is_refused(read, framework, model, overrides, said):
    with pytest.raises(ConfigError, match=said):
        read("run.yaml", experiment(framework, model, overrides), hardware="mi300x-8")


def test_a_variable_without_default_is_asked_for(read):
    text = experiment("megatron", "llama3.1_8B.yaml", '{seq_length: "${LENGTH}", wandb_project: "${NAME}"}')
    run = read("run.yaml", text, hardware="mi300x-8")
    assert "set by a variable whose value is not said: seq_length; add as key=value" in run.notes
    assert read("run.yaml", text, "seq_length=2048", hardware="mi300x-8").workload.sequence_length == 2048


@cases("said, reason")
def test_recomputation_that_megatron_does_not_know_is_refused(read, said, reason):
    text = experiment("megatron", "tiny.yaml", f"{{{TINY}, recompute_granularity: full}}")
    with pytest.raises(ConfigError) as refusal:
        read("run.yaml", text, said, hardware="mi300x-8")
    assert re.search(reason, str(refusal.value))
    assert "batch" not in str(refusal.value)
