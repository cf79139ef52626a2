"""TRL's command line and its YAML, and FSDP as arguments of the Trainer."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

SFT = "trl sft --model_name_or_path Qwen/Qwen3-8B --dataset_name trl-lib/Capybara --packing --max_length 4096"
YAML = """
model_name_or_path: Qwen/Qwen3-8B
dataset_name: trl-lib/Capybara
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
max_length: 4096
packing: true
bf16: true
gradient_checkpointing: true
"""
TORCHRUN = (
    "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1"
    " --gradient_accumulation_steps 4 --bf16 --gradient_checkpointing false --model_max_length 4096"
)


def test_a_command_with_a_configuration_that_trl_brings_along(read):
    run = read(
        "sft.sh",
        f"{SFT} --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --no_gradient_checkpointing"
        " --accelerate_config fsdp2 --num_processes 16 --num_machines 2 --loss_type chunked_nll",
    )
    assert (str(run.plan), run.hardware.devices) == ("data=16 microbatches=8 remat=none", 16)
    assert (run.workload.global_batch, run.workload.sequence_length, run.workload.precision) == (256, 4096, "bf16")
    assert any("accelerate_config fsdp2 is TRL's own" in note for note in run.notes)
    assert any(note.endswith("as the program has it today: bf16=true") for note in run.notes)
    recomputed = Plan.parse("data=16 microbatches=8 remat=full")
    line = launch_lines(recomputed, "accelerate", run.hyperparameters, global_batch=256)
    assert "fsdp_activation_checkpointing: true" in line


def test_what_a_command_leaves_out_is_taken_as_trl_has_it(read):
    run = read("sft.sh", f"{SFT} --accelerate_config zero3")
    assert (str(run.plan), run.workload.global_batch) == ("data=8 microbatches=1 remat=full", 64)
    assert (run.workload.framework, run.workload.zero_stage, run.workload.precision) == ("DeepSpeed", 3, "bf16")
    assert read("sft.sh", f"{SFT} --accelerate_config zero3 --fp16").workload.precision == "fp16"
    alone = read("sft.sh", SFT, hardware="h100-8")
    assert alone.plan.degree("replica") == 8
    assert any("taken as replicas, as Accelerate starts it" in note for note in alone.notes)
    own = "accelerate launch --num_processes 4 --use_fsdp trl/scripts/sft.py --model_name_or_path Qwen/Qwen3-8B"
    assert read("sft.sh", own).workload.global_batch == 32
    assert read("sft.sh", own.replace("trl/", "my/")).workload.global_batch is None


def test_a_yaml_also_says_how_accelerate_starts_it(read, tmp_path):
    (tmp_path / "sft.yaml").write_text(YAML + "accelerate_config: own.yaml\nnum_processes: 4\n")
    (tmp_path / "own.yaml").write_text("distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nnum_processes: 8\n")
    run = read("run.sh", "trl sft --config sft.yaml --per_device_train_batch_size 4")
    assert (run.hardware.devices, run.workload.global_batch, run.plan.degree("data")) == (4, 4 * 4 * 4, 4)
    alone = read("alone.yaml", YAML, "accelerate_config=fsdp1", "num_processes=16")
    assert (str(alone.plan), alone.workload.global_batch) == ("data=16 microbatches=4 remat=full", 128)
    with pytest.raises(ConfigError, match=r"does not say how its program is started.*accelerate_config=FILE.yaml"):
        read("alone.yaml", YAML)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}')
    zero = read("alone.yaml", YAML, "deepspeed=ds.json", hardware="h100-8")
    assert (zero.workload.framework, zero.workload.zero_stage) == ("DeepSpeed", 2)
    written = f"cat > /tmp/sft.yaml <<EOF\n{YAML}EOF\ntrl sft --config /tmp/sft.yaml --accelerate_config fsdp2\n"
    assert read("run.sh", written).workload.global_batch == 2 * 4 * 8


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("trl dpo --model_name_or_path x", "trl_dpo.py, which by its name trains by another method"),
        (f"{SFT} --accelerate_config fsdp9", "names accelerate_config fsdp9, which is neither a file nor one of TRL's"),
        (f"{SFT} --vision_tower clip", "vision_tower is an argument of training with an encoder of images"),
        (f"{SFT} --loss_type sigmoid", "loss_type is an argument of training on preferences"),
        (f"{SFT} --use_peft --lora_r 32", "use_peft=True: training a part"),
        (f"{SFT} --config missing.yaml", "names the arguments in missing.yaml, which is not there"),
        (f"{SFT} --num_processes four", "num_processes must be a whole number"),
        (f"{SFT} --num_processes -4", "num_processes must be a whole number"),
        (f'{TORCHRUN} --fsdp "full_shrad auto_wrap"', "fsdp has no option full_shrad"),
        (f'{TORCHRUN} --fsdp full_shard --fsdp_config no.json', "names the fsdp_config no.json, which is not there"),
        (f"{TORCHRUN} --fsdp full_shard --fsdp_config '{{oops}}'", "fsdp_config.json:1: is not JSON"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_by_name(read, command, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", command)


def test_a_model_in_the_cache_of_the_hub_is_known_by_its_folder(read):
    path = "/data/hub/models--meta-llama--Meta-Llama-3.1-405B/snapshots/222de096204587406c7cadb3e0a101aa"
    run = read("args.yaml", YAML.replace("Qwen/Qwen3-8B", path), "accelerate_config=fsdp2")
    assert (run.model.name, run.model.layers) == ("meta-llama/Meta-Llama-3.1-405B", 126)


def test_arguments_of_the_trainer_say_how_fsdp_shards(read, tmp_path):
    assert read("run.sh", f"{TORCHRUN} --fsdp True").plan.degree("data") == 8
    assert read("run.sh", TORCHRUN).plan.degree("replica") == 8
    (tmp_path / "fsdp.json").write_text(json.dumps({"activation_checkpointing": True, "fsdp_version": 2}))
    run = read("run.sh", f'{TORCHRUN} --fsdp "full_shard auto_wrap" --fsdp_config fsdp.json')
    assert str(run.plan) == "data=8 microbatches=4 remat=full"
    assert run.hyperparameters["fsdp_config.fsdp_version"] == 2
    listed = YAML + "fsdp: [full_shard, offload]\nfsdp_config: {activation_checkpointing: false}\n"
    assert read("args.yaml", listed, hardware="h100-8").plan.offload == ("optimizer", "parameters")


def test_gradients_that_are_scattered_in_every_microbatch_are_not_kept_whole(read):
    told = json.dumps({"gradient_accumulation_kwargs": {"sync_each_batch": True}})
    run = read("run.sh", f"{TORCHRUN} --fsdp full_shard --accelerator_config '{told}'")
    assert run.workload.sync_each_batch is True
    assert not any("gradients are kept whole" in note for note in run.notes)
    whole = read("run.sh", f"{TORCHRUN} --fsdp full_shard")
    assert whole.workload.sync_each_batch is None
    assert any("gradients are kept whole between microbatches" in note for note in whole.notes)
    sometimes = told.replace("true", '"sometimes"')
    with pytest.raises(ConfigError, match="sync_each_batch must be true or false, not 'sometimes'"):
        read("run.sh", f"{TORCHRUN} --fsdp full_shard --accelerator_config '{sometimes}'")


def test_a_command_in_the_quotes_of_another_ends_with_its_line(read):
    text = (
        'srun --nodes=2 bash -c "\n'
        "export MODEL=Qwen/Qwen3-8B\n"
        "accelerate launch --use_fsdp --num_processes 16 sft.py --model_name_or_path \\$MODEL --bf16 true \\\n"
        "    --per_device_train_batch_size 2 --max_length 4096\n"
        'lm_eval --model hf --batch_size 4\n"\n'
    )
    run = read("run.sh", text)
    assert (run.model.name, run.workload.global_batch, run.plan.devices) == ("Qwen/Qwen3-8B", 32, 16)
    assert "TrainingArguments.batch_size" not in run.hyperparameters


def test_arguments_in_a_form_of_their_own_are_named_and_decide_nothing(read):
    start = "accelerate launch --use_fsdp --num_processes 4 launch.py loss=sft ++model.name_or_path=Qwen/Qwen3-8B\n"
    run = read("run.sh", start)
    assert (run.workload.precision, run.model, str(run.plan)) == (None, None, "data=4")
    assert any(note.startswith("not read: loss=sft, ++model.name_or_path=Qwen/Qwen3-8B, which") for note in run.notes)
    with pytest.raises(ConfigError, match="loss is an argument of training on preferences"):
        read("run.sh", start.replace("loss=sft", "loss=dpo"))


def test_a_yaml_that_a_script_names_below_a_variable_and_the_processes_of_its_launcher(read, tmp_path):
    (tmp_path / "run.yml").write_text(
        "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 2\nsequence_len: 4096\nsample_packing: true\nbf16: true\n"
        "fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\nliger_fused_linear_cross_entropy: true\n"
    )
    start = "torchrun --nnodes=4 --nproc-per-node=8 -m axolotl.cli.train $REPO/configs/run.yml\n"
    run = read("run.sh", start)
    assert (str(run.plan.ici.data), run.workload.global_batch) == ("32", 64)
    assert run.workload.fused_linear_cross_entropy is True
    assert read("run.sh", start, hardware="h100-8").plan.devices == 8
    with pytest.raises(ConfigError, match=r"trains configs/\$NAME.yml, which a variable names \(add NAME=…"):
        read("run.sh", start.replace("run.yml", "$NAME.yml"))


def test_a_program_of_any_name_is_told_by_its_folder(read):
    start = "deepspeed --num_gpus 8 step2_reward_model/main.py --deepspeed --zero_stage 2 --model_name_or_path x"
    with pytest.raises(
        ConfigError, match=r"starts step2_reward_model/main.py, which by its name trains by another method"
    ):
        read("run.sh", start)
    assert read("run.sh", start.replace("step2_reward_model", "step1_supervised")).plan.devices == 8
