"""Primus's YAML: its three backends, presets beside it or not, and variables of the environment."""

import re

import pytest
import yaml

from asap.core.errors import ConfigError, PlanError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.plans import Plan, Remat
from asap.stacks.launchers import launch_lines, stack_of

EXPERIMENT = """
work_group: ${{PRIMUS_TEAM:amd}}
exp_name: ${{PRIMUS_EXP_NAME:a-run}}
modules:
  pre_trainer:
    framework: {framework}
    config: pre_trainer.yaml
    model: {model}
    overrides: {overrides}
"""
MEGATRON = """{seq_length: "${PRIMUS_SEQ_LENGTH:8192}", micro_batch_size: 2, global_batch_size: 128,
        tensor_model_parallel_size: "${PRIMUS_TP:2}", recompute_granularity: full, recompute_method: uniform,
        recompute_num_layers: 1, fp8: hybrid, lr_decay_iters: null}"""
TITAN = "{sink_level: null, training: {local_batch_size: 6, seq_len: 8192}, parallelism: {tensor_parallel_degree: 2}}"
MAXTEXT = """{stderr_sink_level: DEBUG, per_device_batch_size: 5, max_target_length: 8192, dcn_data_parallelism: 1,
        dcn_fsdp_parallelism: -1}"""
BRIDGE = """{precision_config: bf16_with_fp8_current_scaling_mixed, peft: none, tensor_model_parallel_size: 4,
        pipeline_model_parallel_size: 1, context_parallel_size: 1, use_megatron_fsdp: false, sequence_parallel: false,
        virtual_pipeline_model_parallel_size: null, global_batch_size: 128, micro_batch_size: 1, seq_length: 2048,
        recompute_granularity: full}"""
PRESETS = {
    "modules/megatron_bridge/pre_trainer.yaml": "stage: sft\nenable_primus_turbo: true",
    "models/megatron_bridge/llama.yaml": "recipe: llama.llama3\nflavor: llama31_8b_finetune_config\n"
    "hf_path: meta-llama/Llama-3.1-8B",
    "models/megatron_bridge/zebra.yaml": "recipe: zebra_llama.zebra_llama",
    "modules/megatron/pre_trainer.yaml": "extends: [trainer_base.yaml]\nglobal_batch_size: 16\nbf16: true",
    "modules/megatron/trainer_base.yaml": "micro_batch_size: 2\nseq_length: 4096\nuse_distributed_optimizer: true",
    "models/megatron/tiny.yaml": "extends: base.yaml\nnum_layers: 4\nhidden_size: 512\nnum_attention_heads: 8",
    "models/megatron/base.yaml": "swiglu: true\nffn_hidden_size: 2048\nvocab_size: 32000",
}


def experiment(framework: str, model: str, overrides: str) -> str:
    return EXPERIMENT.format(framework=framework, model=model, overrides=overrides)


def pasted(line: str) -> dict:
    return yaml.safe_load(line)["modules"]["pre_trainer"]["overrides"]


@pytest.fixture
def primus(tmp_path):
    """A copy of Primus with a few presets; writes an experiment into it and reads it."""

    def call(text: str, *overrides: str, presets=PRESETS) -> Experiment:
        for name, content in presets.items():
            path = tmp_path / "primus" / "configs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        path = tmp_path / "examples" / "run.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return read_configuration(path, overrides, Experiment(id="x", hardware=refer_to_hardware("mi300x-8")[0]))

    return call


def test_megatron_with_the_presets_of_trainer_and_model(primus):
    run = primus(experiment("megatron", "tiny.yaml", "{seq_length: 2048}"), "tensor_model_parallel_size=2")
    assert (run.model.name, run.model.layers, run.model.d_ff, run.model.gated_mlp) == ("tiny", 4, 2048, True)
    assert (run.workload.global_batch, run.workload.sequence_length, run.workload.zero_stage) == (16, 2048, 1)
    assert str(run.plan) == "replica=4 model=2 microbatches=2 remat=none"


def test_megatron_alone_has_the_model_of_its_presets_name_and_the_defaults_of_primus(read):
    run = read("run.yaml", experiment("megatron", "llama3.1_8B.yaml", MEGATRON), hardware="mi300x-8")
    assert (run.model.layers, run.workload.sequence_length, run.workload.precision) == (32, 8192, "fp8")
    assert str(run.plan) == "replica=4 model=2 microbatches=16 remat=full"
    assert (run.workload.zero_stage, run.workload.sequence_parallel, stack_of(run.workload.framework)) == (
        1, True, "megatron",
    )  # fmt: skip
    assert any("presets of Primus (primus/configs) are not above the file" in note for note in run.notes)
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


def test_maxtext_with_overrides_of_its_keys(read):
    text = experiment("maxtext", "llama3.1_405B.yaml", MAXTEXT)
    run = read("run.yaml", text, "per_device_batch_size=2", hardware="mi355x-64")
    assert (run.model.layers, run.workload.global_batch, run.workload.weight_precision) == (126, 128, "bf16")
    assert str(run.plan) == "data=64 microbatches=1 remat=full"
    line = launch_lines(Plan.parse("data=32 model=2 microbatches=1 remat=full"), "maxtext", run.hyperparameters)
    assert pasted(line) == {"ici_tensor_parallelism": 2}


def test_megatron_bridge_takes_parameters_of_its_recipe_and_sections(primus):
    run = primus(experiment("megatron_bridge", "llama.yaml", BRIDGE), "recompute_granularity=none")
    assert (run.model.name, run.workload.framework) == ("meta-llama/Llama-3.1-8B", "Megatron-Bridge")
    assert (str(run.plan), run.workload.precision) == ("replica=2 model=4 microbatches=64 remat=none", "fp8")
    assert (run.workload.global_batch, run.workload.sequence_length) == (128, 2048)
    dropped = primus(experiment("megatron_bridge", "llama.yaml", BRIDGE))
    assert dropped.plan.remat is None
    assert any(note.startswith("recompute_granularity: recipes of Megatron-Bridge have no") for note in dropped.notes)
    sections = BRIDGE.replace("recompute_granularity: full", "model: {recompute_granularity: full}, peft: None")
    sections = sections.replace("peft: none, ", "")
    assert primus(experiment("megatron_bridge", "llama.yaml", sections)).plan.remat is Remat.FULL


def test_megatron_bridge_alone_has_the_model_of_its_presets_name(read):
    alone = read("run.yaml", experiment("megatron_bridge", "llama31_70b.yaml", BRIDGE), hardware="mi355x-8")
    assert (alone.model.layers, alone.plan.degree("model")) == (80, 4)


def test_a_plan_of_megatron_bridge_is_said_by_parameters_and_sections(primus):
    run = primus(experiment("megatron_bridge", "llama.yaml", BRIDGE))
    assert stack_of(run.workload.framework) == "bridge"
    line = launch_lines(
        Plan.parse("replica=4 model=2 microbatches=16"), "bridge", run.hyperparameters, global_batch=128
    )
    assert pasted(line) == {"tensor_model_parallel_size": 2, "micro_batch_size": 2}
    line = launch_lines(Plan.parse("data=2 model=4"), "bridge", run.hyperparameters)
    assert pasted(line)["use_megatron_fsdp"] is True
    assert pasted(line)["ddp"]["data_parallel_sharding_strategy"] == "optim_grads_params"
    with pytest.raises(PlanError, match="Primus hands no recomputation on"):
        launch_lines(Plan.parse("replica=2 model=4 remat=selective"), "bridge", run.hyperparameters)


def test_adapters_of_megatron_bridge_are_refused_also_where_they_are_the_default(primus):
    for said, reason in (("peft: lora", "peft=lora: training a part"), ("peft: null", "does not say peft")):
        with pytest.raises(ConfigError, match=reason):
            primus(experiment("megatron_bridge", "llama.yaml", BRIDGE.replace("peft: none", said)))
    unsaid = experiment("megatron_bridge", "llama.yaml", BRIDGE.replace("peft: none, ", ""))
    assert primus(unsaid, "peft=none").plan.degree("model") == 4


@pytest.mark.parametrize(
    ("framework", "model", "overrides", "said"),
    [
        ("maxdiffusion", "x", "{}", "trains with maxdiffusion, which is not read"),
        ("megatron_bridge", "zebra.yaml", "{peft: none}", "trains zebra_llama.zebra_llama; only decoders"),
        ("megatron", "tiny.yaml", "{model_type: mamba}", "a model of the kind mamba"),
        ("megatron", "other.yaml", "{}", "names the preset other.yaml, which is not in"),
        ("megatron", "../../../../etc/passwd", "{}", "which is not in"),
        (
            "megatron",
            "tiny.yaml",
            "{tensor_model_parallel_size: 3}",
            "are not a multiple of tensor_model_parallel_size=3",
        ),
    ],
)
def test_what_is_not_read_or_not_there_is_refused(primus, framework, model, overrides, said):
    with pytest.raises(ConfigError, match=said):
        primus(experiment(framework, model, overrides))


def test_a_preset_that_extends_what_lies_outside_is_refused(primus):
    outside = PRESETS | {"models/megatron/tiny.yaml": "extends: ../../../../secret.yaml"}
    with pytest.raises(ConfigError, match="which is not among the presets"):
        primus(experiment("megatron", "tiny.yaml", "{}"), presets=outside)
    endless = PRESETS | {"models/megatron/tiny.yaml": "extends: tiny.yaml"}
    with pytest.raises(ConfigError, match="which is not among the presets"):
        primus(experiment("megatron", "tiny.yaml", "{}"), presets=endless)


def test_a_variable_without_default_is_refused_unless_it_is_said(read):
    text = experiment("megatron", "llama3.1_8B.yaml", '{seq_length: "${LENGTH}", wandb_project: "${NAME}"}')
    with pytest.raises(ConfigError, match=r"seq_length is set by a variable without a default: \$\{LENGTH\} .say it"):
        read("run.yaml", text, hardware="mi300x-8")
    assert read("run.yaml", text, "seq_length=2048", hardware="mi300x-8").workload.sequence_length == 2048


def test_presets_of_an_earlier_primus_name_their_bases_of_which_the_first_has_the_say(primus):
    earlier = PRESETS | {
        "models/megatron/tiny.yaml": "bases: [wide.yaml, base.yaml]\nnum_layers: 4\nhidden_size: 512\n"
        "num_attention_heads: 8",
        "models/megatron/wide.yaml": "ffn_hidden_size: 4096\nincludes: gated.yaml",
        "models/megatron/gated.yaml": "swiglu: true\nffn_hidden_size: 1024",
        "models/megatron/base.yaml": "ffn_hidden_size: 2048\nvocab_size: 32000",
    }
    run = primus(experiment("megatron", "tiny.yaml", "{}"), presets=earlier)
    assert (run.model.d_ff, run.model.gated_mlp, run.model.vocab) == (4096, True, 32000)


def test_layers_that_are_recomputed_by_their_number_are_a_share_of_all(primus):
    said = "{recompute_granularity: full, recompute_method: null, recompute_layer_ids: [0, 2]}"
    run = primus(experiment("megatron", "tiny.yaml", said))
    assert run.plan.remat.value == "full.1/2"
    assert "recompute_layer_ids: 2 of 4 layers" in run.notes
    assert (
        primus(
            experiment("megatron", "tiny.yaml", "{recompute_granularity: full}"), "recompute_layer_ids=0,1,3"
        ).plan.remat.value
        == "full.3/4"
    )
    line = launch_lines(
        run.plan.model_copy(update={"remat": Remat.FULL}), "megatron", run.hyperparameters, global_batch=16, layers=4
    )
    assert pasted(line) == {"recompute_method": "uniform", "recompute_num_layers": 1, "recompute_layer_ids": None}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("recompute_layer_ids=0,4", "names layer 4, and the last one is 3"),
        ("recompute_layer_ids=some", "must be numbers of decoder layers"),
        ("recompute_num_layers=some", r"must be a positive whole number, not 'some' \(say it as a number"),
        ("recompute_granularity=block", "recompute_granularity must be full or selective, not 'block'"),
        ("recompute_method=selective", "recompute_method must be uniform or block, not 'selective'"),
    ],
)
def test_recomputation_that_megatron_does_not_know_is_refused(primus, said, reason):
    with pytest.raises(ConfigError) as refusal:
        primus(experiment("megatron", "tiny.yaml", "{recompute_granularity: full}"), said)
    assert re.search(reason, str(refusal.value))
    assert "batch" not in str(refusal.value)
