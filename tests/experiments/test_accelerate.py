"""Accelerate's configuration with the arguments of a program, in files and in scripts."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import ConfigError, PlanError
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.settings.stack_settings import dotted
from asap.optimize.evaluators.run.command import words
from asap.optimize.evaluators.run.settings import asked_settings, settings_document
from asap.plans import Mesh, Plan, Remat
from asap.proposals.proposal import Overrides
from asap.stacks.accelerate import settings as accelerate
from asap.stacks.launchers import launch_lines, words_of
from tests.experiments.stack_configurations import read

__all__ = ["read"]

FIRST = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_offload_params: false
  fsdp_sharding_strategy: FULL_SHARD
mixed_precision: bf16
num_machines: 2
num_processes: 16
"""
SECOND = """
distributed_type: FSDP
fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true, fsdp_activation_checkpointing: true}
parallelism_config: {parallelism_config_dp_shard_size: 4, parallelism_config_dp_replicate_size: 2,
  parallelism_config_tp_size: 2}
mixed_precision: bf16
num_processes: 16
"""
ZERO = """
distributed_type: DEEPSPEED
deepspeed_config: {zero_stage: 3, offload_optimizer_device: none, offload_param_device: none}
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
ARGUMENTS = (
    "model_name_or_path=meta-llama/Llama-3.1-8B", "per_device_train_batch_size=2", "gradient_accumulation_steps=4",
    "gradient_checkpointing=true", "max_length=4096", "packing=true",
)  # fmt: skip
COMMAND = """#!/bin/bash
NODES=2
BATCH=2
export LAUNCHER="accelerate launch --config_file accelerate_configs/fsdp.yaml \\
    --num_processes $((NODES * 8)) --num_machines $NODES --main_process_ip $HEAD"
export ARGS="--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size $BATCH \\
    --gradient_accumulation_steps 4 --gradient_checkpointing --max_length 4096 --packing True --bf16"
srun $LAUNCHER scripts/sft.py $ARGS
"""
TORCHRUN = """
torchrun --nproc_per_node=8 --master_port=1234 train.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16 True \\
    --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --gradient_checkpointing False \\
    --model_max_length 2048 --fsdp "full_shard auto_wrap" --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer
"""
POWERS = st.sampled_from((1, 2, 4))

WHOLE = "gradients are kept whole between microbatches"


def line(run, plan: str) -> str:
    return launch_lines(Plan.parse(plan), "accelerate", run.hyperparameters, global_batch=run.workload.global_batch)


def test_fsdp_over_all_processes_with_the_arguments_of_the_program(read):
    run = read("fsdp.yaml", FIRST, *ARGUMENTS)
    assert str(run.plan) == "data=16 microbatches=4 remat=full"
    assert (run.hardware.devices, run.model.layers, run.workload.global_batch) == (16, 32, 128)
    assert (run.workload.sequence_length, run.workload.precision, run.workload.zero_stage) == (4096, "bf16", 3)
    assert (run.workload.framework, run.workload.weight_precision) == ("Accelerate FSDP", None)
    assert [note.partition(",")[0] for note in run.notes] == [WHOLE]


def test_version_1_shards_over_a_machine_or_over_all(read):
    hybrid = read("fsdp.yaml", FIRST.replace("FULL_SHARD", "HYBRID_SHARD"), *ARGUMENTS)
    assert str(hybrid.plan) == "replica=2 data=8 microbatches=4 remat=full"
    assert read("fsdp.yaml", FIRST.replace("FULL_SHARD", "4"), *ARGUMENTS).plan == hybrid.plan
    everything = line(hybrid, "data=16 microbatches=4 remat=full")
    assert everything == "fsdp_config: {fsdp_sharding_strategy: FULL_SHARD}"
    run = read("fsdp.yaml", FIRST, *ARGUMENTS)
    assert line(run, str(hybrid.plan)) == "fsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}"
    with pytest.raises(PlanError, match="replicates over machines alone"):
        line(run, "replica=4 data=4")


def test_version_2_has_sizes(read):
    run = read("fsdp2.yaml", SECOND, *(a for a in ARGUMENTS if "checkpointing" not in a))
    assert str(run.plan) == "replica=2 data=4 model=2 microbatches=4 remat=full"
    assert run.workload.global_batch == 64
    changed = parse_yaml(line(run, "data=16 microbatches=2 remat=none").partition("\n#")[0], "line")[0]
    assert changed == {
        "fsdp_config": {"fsdp_activation_checkpointing": False},
        "parallelism_config": {
            "parallelism_config_dp_shard_size": 16, "parallelism_config_dp_replicate_size": 1,
            "parallelism_config_tp_size": 1,
        },
    }  # fmt: skip
    with pytest.raises(PlanError, match="nothing to shard beside tensors"):
        line(run, "model=16")
    with pytest.raises(ConfigError, match="the other sizes leave 16 devices"):
        read("fsdp2.yaml", SECOND.replace("num_processes: 16", "num_processes: 32"), *ARGUMENTS)
    with pytest.raises(ConfigError, match="fsdp_config is not a mapping"):
        read("fsdp.yaml", "distributed_type: FSDP\nnum_processes: 16\nfsdp_config: [1, 2]\n", *ARGUMENTS)


def test_replicas_become_fsdp_and_back(read):
    run = read("ddp.yaml", "distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: bf16", *ARGUMENTS)
    assert (str(run.plan), run.workload.framework) == ("replica=8 microbatches=4 remat=full", "Accelerate DDP")
    assert parse_yaml(line(run, "data=8 microbatches=4"), "line")[0] == {
        "distributed_type": "FSDP",
        "fsdp_config": {"fsdp_version": 2, "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"},
    }
    assert line(read("fsdp.yaml", FIRST, *ARGUMENTS), "replica=16 microbatches=4") == "distributed_type: MULTI_GPU"


def test_what_the_arguments_do_not_say_stays_unknown(read):
    run = read("fsdp.yaml", FIRST)
    assert (run.plan.remat, run.plan.microbatches, run.workload.global_batch) == (None, None, None)
    assert [note.partition(":")[0] for note in run.notes] == [
        "the batch is not said",
        "what is recomputed is not said, and taken as every layer",
        "the model is not said",
    ]
    told = read("fsdp.yaml", FIRST, "workload.global_batch=64")
    assert not any(note.startswith("the batch is not said") for note in told.notes)
    assert read("fsdp.yaml", FIRST.replace("mixed_precision: bf16\n", "")).workload.precision is None
    loaded = read("fsdp.yaml", FIRST.replace("bf16", "'no'"), *ARGUMENTS, "torch_dtype=bfloat16")
    assert (loaded.workload.precision, loaded.workload.weight_precision) == ("bf16", "bf16")


def test_a_batch_that_is_not_said_is_asked_in_the_words_of_the_program(read):
    asked = [note for note in read("zero3.yaml", ZERO, "model=llama3.1-8b").notes if "batch" in note]
    assert asked == [
        "the batch is not said: add per_device_train_batch_size=… and gradient_accumulation_steps=…, or --batch N"
    ]


def test_deepspeed_that_accelerate_says_itself(read):
    run = read("zero3.yaml", ZERO, *ARGUMENTS)
    assert (str(run.plan), run.workload.global_batch) == ("data=8 microbatches=4 remat=full", 64)
    assert (run.workload.framework, run.workload.zero_stage, run.workload.precision) == ("DeepSpeed", 3, "bf16")
    assert words_of("deepspeed", run.hyperparameters) == "accelerate"
    assert launch_lines(
        Plan.parse("replica=8 microbatches=2 remat=none"), "deepspeed", run.hyperparameters, global_batch=64
    ) == (
        "deepspeed_config: {zero_stage: 2}\n# arguments of the program that trains:\n"
        "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --gradient_checkpointing false"
    )
    with pytest.raises(PlanError, match="in a DeepSpeed JSON alone"):
        launch_lines(Plan.parse("replica=4 model=2"), "deepspeed", run.hyperparameters, global_batch=64)


def test_deepspeed_of_a_file_and_sequences_over_processes(read, tmp_path):
    stage = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": "auto"}
    (tmp_path / "ds.json").write_text(json.dumps(stage))
    text = "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: configs/ds.json}\nnum_processes: 8"
    run = read("ds.yaml", text, *ARGUMENTS)
    assert (str(run.plan), run.workload.zero_stage) == ("replica=8 microbatches=4 remat=full", 2)
    assert words_of("deepspeed", run.hyperparameters) == "deepspeed"
    split = read("sp.yaml", f"{ZERO}parallelism_config: {{parallelism_config_sp_size: 4}}", *ARGUMENTS)
    assert str(split.plan) == "data=2 seq=4 microbatches=4 remat=full"


def test_a_script_and_the_options_of_its_command_win_over_the_file(read, tmp_path):
    (tmp_path / "accelerate_configs").mkdir()
    (tmp_path / "accelerate_configs" / "fsdp.yaml").write_text(FIRST.replace(": 16", ": 8").replace(": 2", ": 1"))
    run = read("train.sh", COMMAND)
    assert (str(run.plan), run.hardware.devices) == ("data=16 microbatches=4 remat=full", 16)
    assert (run.workload.global_batch, run.workload.sequence_length) == (128, 4096)
    assert [note.partition(",")[0] for note in run.notes] == [WHOLE]
    offloaded = read("train.sh", COMMAND.replace("--num_machines", "--fsdp_offload_params true --num_machines"))
    assert offloaded.plan.offload == ("optimizer", "parameters")
    unknown = read("train.sh", COMMAND.replace("BATCH=2", "BATCH=$1"))
    assert unknown.workload.global_batch is None
    assert "set by a variable whose value is not said: per_device_train_batch_size" in unknown.notes


def test_arguments_in_a_yaml_that_the_program_names(read, tmp_path):
    (tmp_path / "zero3.yaml").write_text(ZERO)
    arguments = "model_name_or_path: meta-llama/Llama-3.1-8B\nper_device_train_batch_size: 4\nmax_seq_length: 2048\n"
    (tmp_path / "sft.yaml").write_text(arguments)
    start = (
        "ACCELERATE_LOG_LEVEL=info accelerate launch --config_file recipes/zero3.yaml scripts/sft.py --config sft.yaml"
    )
    run = read("train.sh", f"{start} --gradient_accumulation_steps 16\n")
    assert (str(run.plan), run.workload.global_batch) == ("data=8 microbatches=16", 512)
    assert run.workload.sequence_length == 2048
    assert any("sequences are cut at 2048 tokens (max_seq_length)" in note for note in run.notes)


def test_a_configuration_that_the_script_writes(read):
    text = f"cat << EOF > acc.yaml\n{FIRST}EOF\naccelerate launch --config_file acc.yaml train.py --bf16\n"
    assert str(read("train.sh", text).plan) == "data=16"


def test_the_trainers_own_option_under_torchrun(read):
    run = read("train.sh", TORCHRUN)
    assert (str(run.plan), run.workload.global_batch) == ("data=8 microbatches=8 remat=none", 256)
    assert line(run, "data=8 microbatches=8 remat=full offload=optimizer+parameters") == (
        '# arguments of the program that trains:\n--gradient_checkpointing true --fsdp "full_shard offload auto_wrap"'
    )
    alone = read("train.sh", TORCHRUN.replace('--fsdp "full_shard auto_wrap"', ""))
    assert (str(alone.plan), alone.workload.zero_stage) == ("replica=8 microbatches=8 remat=none", 0)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("dpo.sh", "accelerate launch --num_processes 8 scripts/dpo.py", "another method than the prediction"),
        ("lora.sh", "accelerate launch --num_processes 8 train.py --use_peft", "training a part of the parameters"),
        ("low.sh", "accelerate launch --num_processes 8 t.py --low_rank_training True", "training a part of the param"),
        ("tune.sh", "accelerate launch --num_processes 8 t.py --do_lora true", "training a part of the parameters"),
        ("score.sh", "accelerate launch --num_processes 8 t.py --gold_reward_path x", "preferences or rewards"),
        ("kl.sh", "accelerate launch --num_processes 8 t.py --kl_coef 0.1", "preferences or rewards"),
        ("rl.sh", "accelerate launch --num_processes 8 stage2_rl.py", "another method than the prediction"),
        ("sd.sh", "accelerate launch --multi_gpu train_text_to_image.py", "another model than a decoder"),
        ("tp.sh", "torchrun t.py --per_device_train_batch_size 1 --tensor_parallel_size 8", "splits its model itself"),
        ("eval.sh", "accelerate launch --multi_gpu eval.py --model x", "does not train"),
        ("map.sh", "python analyze_data.py --per_device_train_batch_size 1000 --output_dir x", "does not train"),
        ("sft.sh", "accelerate launch --multi_gpu sft_inference.py --per_device_train_batch_size 1", "does not train"),
        ("none.sh", "accelerate launch train.py --bf16", "without naming its configuration"),
        ("lost.sh", "accelerate launch --config_file lost.yaml train.py", "which is not there"),
        ("var.sh", "accelerate launch --config_file $CONFIG train.py", "which a variable names"),
        ("mega.yaml", "distributed_type: MEGATRON_LM\nnum_processes: 8", "others are not read"),
        ("bad.yaml", FIRST.replace("FULL_SHARD", "SOME_SHARD"), "Accelerate has no fsdp_config.fsdp_sharding_strategy"),
        ("one.yaml", "distributed_type: 'NO'\nnum_processes: 8", "trains on one device"),
    ],
)  # fmt: skip
def test_what_is_not_read_says_so_in_a_line(read, name, text, said):
    with pytest.raises(ConfigError, match=said):
        read(name, text)


@given(POWERS, POWERS, POWERS, POWERS, POWERS, st.sampled_from((Remat.NONE, Remat.FULL)), st.booleans())
def test_a_plan_is_found_again_in_its_own_settings(replica, data, tensor, context, accumulated, remat, moved):
    current = dotted(
        {
            "distributed_type": "FSDP",
            "fsdp_config": {"fsdp_version": 2},
            "parallelism_config": {"tp_size": 1, "cp_size": 1},
            "TrainingArguments": {"per_device_train_batch_size": 1},
        }
    )
    plan = Plan(
        ici=Mesh(replica=replica, data=data, seq=context, model=tensor),
        microbatches=accumulated,
        remat=remat,
        offload=("optimizer", "parameters") if moved and data > 1 else (),
    )
    batch = replica * data * accumulated * 2
    try:
        changed = accelerate.to_settings(plan, current, global_batch=batch)
    except PlanError:
        assert data == 1
        assert replica > 1 or context == 1 < tensor
        return
    sizes = [int(value) for key, value in (current | changed).items() if key.startswith("parallelism_config")]
    assert math.prod(sizes) in (1, plan.devices)  # Accelerate takes no others where one is above one
    assert accelerate.from_settings(current | changed, plan.devices) == plan
    assert accelerate.global_batch_of(current | changed, plan) == batch


def test_a_try_changes_one_file_or_the_command():
    of_file = Overrides(accelerate="fsdp_config: {fsdp_offload_params: true}")
    assert settings_document(of_file) == {"fsdp_config": {"fsdp_offload_params": True}}
    of_command = Overrides(accelerate=f"{accelerate.OF_PROGRAM}\n--gradient_accumulation_steps 2")
    assert (words(of_command), settings_document(of_command)) == (
        "--gradient_accumulation_steps 2",
        {"gradient_accumulation_steps": 2},
    )
    both = Overrides(accelerate=f"{of_file.accelerate}\n{of_command.accelerate}")
    assert asked_settings(both) == {"fsdp_config.fsdp_offload_params": "true", "gradient_accumulation_steps": "2"}
    with pytest.raises(PlanError, match="a try changes one file"):
        settings_document(both)


@pytest.mark.parametrize("said", ["--use_peft_lora True", "--lora_r 8", "--peft_method lora", "--load_in_4bit True"])
def test_adapters_are_refused_by_whatever_switch(read, said):
    with pytest.raises(ConfigError, match="training a part of the parameters"):
        read("train.sh", f"accelerate launch --num_processes 8 train.py --per_device_train_batch_size 1 {said}\n")
    off = "accelerate launch --num_processes 8 train.py --use_lora 0 --lora_r 8 --gradient_checkpointing 0\n"
    assert str(read("train.sh", off).plan) == "replica=8 remat=none"


def test_one_machine_is_shared_by_all_under_a_hybrid_strategy(read):
    run = read("h.yaml", FIRST.replace("FULL_SHARD", "HYBRID_SHARD").replace("machines: 2", "machines: 1"), *ARGUMENTS)
    assert (str(run.plan), line(run, str(run.plan))) == ("data=16 microbatches=4 remat=full", "")


def test_a_launcher_around_accelerate_that_starts_it_on_nodes_leaves_devices_open(read, tmp_path):
    (tmp_path / "stage3.conf").write_text(json.dumps({"zero_optimization": {"stage": 3}}, indent=1))
    start = "python mason.py --num_nodes 8 --gpus 8 -- accelerate launch --num_processes 8 --use_deepspeed"
    text = f"{start} --deepspeed_config_file configs/stage3.conf finetune.py --per_device_train_batch_size 1\n"
    assert read("train.sh", text).plan is None
    assert str(read("train.sh", text, hardware="h100-64").plan) == "data=64 microbatches=1"


def test_an_optimizer_by_the_name_that_the_program_gives_it(read):
    run = read("train.sh", "accelerate launch --num_processes 8 train.py --customized_optim muon --bf16\n")
    assert run.workload.optimizer == "muon"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("num_processes: eight", r"num_processes must be a whole number up to .*, not 'eight'"),
        ("num_processes: [8]", "num_processes must be"),
        ("num_processes: -8", "num_processes must be a whole number above zero, not -8"),
        (f"num_processes: {'9' * 25}", "cannot be read|must be a whole number"),
        ("num_processes: 8\nnum_machines: two", "num_machines must be a whole number"),
        ("num_processes: 8\nmixed_precision: bf17", "mixed_precision must be one of no, fp16, bf16, fp8"),
        ("num_processes: 8\nparallelism_config: {tp_size: two}", "parallelism_config.tp_size must be a whole number"),
        ("num_processes: 8\nfsdp_config: {fsdp_offload_params: perhaps}", "fsdp_offload_params must be true or false"),
        ("num_processes: 8\nfsdp_config: {fsdp_version: 3}", "fsdp_version must be one of 1, 2"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(read, said, reason):
    with pytest.raises(ConfigError, match=reason):
        read("fsdp.yaml", f"distributed_type: FSDP\n{said}\n")


def test_a_number_of_processes_that_is_left_open_says_nothing(read):
    for text in ("", "null", "'{{ gpus }}'", "$GPUS"):
        run = read("fsdp.yaml", f"distributed_type: FSDP\nmixed_precision: no\nnum_processes: {text}\n")
        assert (run.hardware.devices, run.plan) == (None, None)


def test_an_argument_of_the_wrong_kind_is_refused(read):
    with pytest.raises(ConfigError, match="packing must be true or false, not 'perhaps'"):
        read("fsdp.yaml", FIRST, *ARGUMENTS[:-1], "packing=perhaps")


@pytest.mark.parametrize(
    ("mixed", "argument", "precision"),
    [
        ("", "--batch-size 1", None),
        ("", "--per_device_train_batch_size 1", "fp32"),
        ("mixed_precision: 'no'", "--batch-size 1", "fp32"),
        ("mixed_precision: bf16", "--batch-size 1", "bf16"),
    ],
)
def test_precision_that_only_the_program_knows_is_unknown(read, tmp_path, mixed, argument, precision):
    stage = {"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": 1}
    (tmp_path / "ds.json").write_text(json.dumps(stage | {"gradient_accumulation_steps": "auto"}))
    configuration = "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds.json}\nnum_processes: 8"
    (tmp_path / "one.yaml").write_text(f"{configuration}\n{mixed}\n")
    run = read("run.sh", f"accelerate launch --config_file one.yaml train.py {argument}\n")
    assert run.workload.precision == precision
    if argument == "--batch-size 1":
        assert any("the batch is not said: add gradient_accumulation_steps=" in note for note in run.notes)


def test_a_file_is_found_by_the_end_of_its_path(read, tmp_path):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "fsdp.yaml").write_text(FIRST)
    (tmp_path / "fsdp.yaml").write_text(FIRST.replace("num_processes: 16", "num_processes: 8"))
    command = "accelerate launch --config_file /home/user/repository/configs/fsdp.yaml train.py --bf16"
    assert read("run.sh", f"{command}\n").hardware.devices == 16


def test_switches_that_only_the_program_knows_are_named(read, tmp_path):
    (tmp_path / "fsdp.yaml").write_text(FIRST)
    own = "--compile --cpu_offload --offload_dir none --torch_compile"
    run = read("run.sh", f"accelerate launch --config_file fsdp.yaml train.py --bf16 {own}\n")
    assert "not read, as only the program knows what it changes: --compile, --cpu_offload" in run.notes
    assert run.workload.compiled


def test_a_configuration_below_the_folder_of_the_script(read, tmp_path):
    (tmp_path / "fsdp.yaml").write_text(FIRST)
    here = 'HERE="$(cd "$(dirname "$0")" && pwd)"\n'
    run = read("run.sh", f'{here}accelerate launch --config_file "$HERE/fsdp.yaml" train.py --bf16\n')
    assert run.workload.framework == "Accelerate FSDP"


def test_switches_of_other_methods_that_are_off_change_nothing(read):
    off = (
        "accelerate launch --num_processes 8 t.py --per_device_train_batch_size 1 --low_rank_training False --kl_coef 0"
    )
    assert read("t.sh", f"{off} --merge_lora_only false").plan is not None


def test_a_deepspeed_configuration_that_an_argument_of_the_program_names_decides(read, tmp_path):
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}')
    start = (
        "accelerate launch --num_processes 8 --multi_gpu t.py --per_device_train_batch_size 1 --bf16 true --deepspeed"
    )
    run = read("t.sh", f"{start} ds.json")
    assert (str(run.plan), run.workload.framework, run.workload.precision) == (
        "data=8 microbatches=1",
        "DeepSpeed",
        "bf16",
    )
    with pytest.raises(ConfigError, match="which is not there"):
        read("t.sh", f"{start} lost.json")
    with pytest.raises(ConfigError, match=r"set by a variable .*add deepspeed=FILE"):
        read("t.sh", f"{start} $DS_FILE")
    assert read("t.sh", f"{start} $DS_FILE", "deepspeed=ds.json").plan.degree("data") == 8
