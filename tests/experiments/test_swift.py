"""ms-swift: its commands under the Trainer and under Megatron, and the arguments that a run of it records."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.diagnosis.diagnose import diagnose
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import DEEPSPEED, read

__all__ = ["read"]

SFT = """MODEL=/models/Qwen3-8B
NPROC_PER_NODE=8 \\
swift sft --model "$MODEL" --train_type full --torch_dtype bfloat16 --max_length 8192 --packing \\
    --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --attn_impl flash_attn --deepspeed zero3
"""
MEGATRON = """NPROC_PER_NODE=8 NNODES=2 megatron sft \\
    --load /models/Qwen3-30B-A3B-mcore --tensor_model_parallel_size 2 --expert_model_parallel_size 8 \\
    --expert_tensor_parallel_size 1 --micro_batch_size 2 --global_batch_size 64 --max_length 4096 --packing true \\
    --sequence_parallel true
"""


def test_the_trainer_with_a_configuration_of_its_own(read):
    run = read("run.sh", SFT)
    assert (run.model.layers, run.model.d_model, run.hardware.devices) == (36, 4096, 8)
    assert str(run.plan) == "data=8 microbatches=4 remat=full"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.precision, work.zero_stage) == (64, 8192, "bf16", 3)
    assert (work.attention, work.framework) == ("flash", "DeepSpeed")
    second = read("run.sh", SFT.replace("zero3", "zero2_offload --gradient_checkpointing false"))
    assert str(second.plan) == "replica=8 microbatches=4 remat=none offload=optimizer"
    assert read("run.sh", SFT.replace("zero3", "default-zero2")).workload.zero_stage == 2
    assert read("run.sh", SFT, "per_device_train_batch_size=4", "max_length=4096").workload.global_batch == 128


def test_a_configuration_of_ms_swifts_own_is_named_or_written_whole(read):
    run = read("run.sh", SFT.replace("zero3", "zero2"))

    def line(plan: str) -> str:
        return launch_lines(Plan.parse(plan), "deepspeed", run.hyperparameters, global_batch=64)

    assert line("data=8 microbatches=4 remat=full") == "--deepspeed zero3"
    assert line("data=8 microbatches=4 remat=none offload=optimizer+parameters") == (
        "--deepspeed zero3_offload --gradient_checkpointing false"
    )
    assert line("replica=8 microbatches=4 remat=full offload=optimizer") == "--deepspeed zero2_offload"
    heading, written = line("data=8 microbatches=4 remat=full offload=optimizer").split("\n")
    assert heading == "# as a DeepSpeed configuration, FILE.json, for --deepspeed FILE.json:"
    zero = json.loads(written)["zero_optimization"]
    assert (zero["stage"], zero["offload_optimizer"], json.loads(written)["gradient_accumulation_steps"]) == (
        3, {"device": "cpu"}, "auto"
    )  # fmt: skip
    both = "replica=8 microbatches=8 remat=full offload=optimizer"
    assert line(both) == "--deepspeed zero2_offload --per_device_train_batch_size 1 --gradient_accumulation_steps 8"


def test_accumulation_that_is_not_said_makes_a_batch_of_sixteen(read):
    run = read("run.sh", SFT.replace("--gradient_accumulation_steps 4", "").replace("size 2", "size 1"))
    assert (run.workload.global_batch, run.plan.microbatches) == (16, 2)
    unknown = read("run.sh", SFT.replace("NPROC_PER_NODE=8", "").replace("--gradient_accumulation_steps 4", ""))
    assert (unknown.plan, unknown.workload.global_batch) == (None, None)


def test_a_deepspeed_file_that_a_variable_or_the_script_places(read, tmp_path):
    (tmp_path / "ds.json").write_text(json.dumps(DEEPSPEED | {"train_micro_batch_size_per_gpu": "auto"}))
    run = read("run.sh", SFT.replace("zero3", "$HERE/ds.json"))
    assert run.plan.offload == ("optimizer",)
    with pytest.raises(ConfigError, match="which is not there"):
        read("run.sh", SFT.replace("zero3", "gone.json"))


def test_replicas_and_fsdp(read):
    plain = read("run.sh", SFT.replace("--deepspeed zero3", ""))
    assert (str(plain.plan), plain.workload.framework) == ("replica=8 microbatches=4 remat=full", "Accelerate DDP")
    assert plain.workload.weight_precision == "bf16"
    sharded = read("run.sh", SFT.replace("--deepspeed zero3", "--fsdp fsdp2 --sequence_parallel_size 2"))
    assert str(sharded.plan) == "data=4 seq=2 microbatches=4 remat=full"
    assert (sharded.workload.global_batch, sharded.workload.context_parallel) == (32, "ulysses")
    own = '{"fsdp": "full_shard offload", "fsdp_config": {"fsdp_version": 2}}'
    written = f"D=runs/$(date)\ncat > $D/own.json <<E\n{own}\nE\n"
    run = read("run.sh", written + SFT.replace("--deepspeed zero3", "--fsdp $D/own.json"))
    assert run.plan.offload == ("optimizer", "parameters")
    with pytest.raises(ConfigError, match="FSDP configuration"):
        read("run.sh", SFT.replace("--deepspeed zero3", "--fsdp $D/own.json"))


def test_megatron_takes_the_model_by_its_name(read):
    run = read("run.sh", MEGATRON)
    assert (run.model.layers, run.model.experts, run.hardware.devices) == (48, 128, 16)
    assert str(run.plan) == "replica=2 model=2 expert=4 microbatches=4 remat=selective"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.precision, work.zero_stage) == (64, 4096, "bf16", 1)
    assert work.sequence_parallel
    off = read("run.sh", MEGATRON.replace("parallel true", "parallel false --recompute_granularity none"))
    assert (off.workload.sequence_parallel, off.plan.remat.value) == (False, "none")
    dense = MEGATRON.replace("30B-A3B", "8B").replace("--expert_model_parallel_size 8 ", "")
    assert str(read("run.sh", dense.replace("--expert_tensor_parallel_size 1", "")).plan).startswith(
        "replica=8 model=2"
    )


def test_how_experts_are_split_depends_on_the_version(read):
    run = read("run.sh", MEGATRON.replace("--expert_tensor_parallel_size 1", ""))
    assert run.plan.degree("expert") == 4
    assert any("expert_tensor_parallel_size is not said, and taken as 1" in note for note in run.notes)
    earlier = read("run.sh", MEGATRON.replace("--expert_tensor_parallel_size 1", ""), "expert_tensor_parallel_size=2")
    assert earlier.plan.degree("expert") == 8


def test_what_it_does_by_default_is_turned_off_by_name(read):
    run = read("run.sh", MEGATRON)
    plan = Plan.parse("replica=2 model=2 expert=4 microbatches=4 remat=none")
    line = launch_lines(plan, "megatron", run.hyperparameters, global_batch=64, layers=48)
    assert line == "--recompute_granularity none"
    wider = Plan.parse("replica=1 model=4 expert=4 microbatches=8")
    assert "--tensor_model_parallel_size 4" in launch_lines(wider, "megatron", run.hyperparameters, global_batch=64)


def test_a_profile_is_asked_for_by_hand(read):
    missing = diagnose(None, stack="megatron", settings=read("run.sh", MEGATRON).hyperparameters).missing
    assert ["use-pytorch-profiler" in (gap.capture or "") for gap in missing] == [False]


def test_what_only_a_run_can_tell_is_asked_for(read):
    run = read("run.sh", MEGATRON.replace("--tensor_model_parallel_size 2", "--tensor_model_parallel_size $TP"))
    assert run.plan is None
    assert any("hangs on tensor_model_parallel_size" in note for note in run.notes)
    told = read("run.sh", MEGATRON.replace("size 2", "size $TP"), "tensor_model_parallel_size=2", "micro_batch_size=2")
    assert told.plan.degree("model") == 2


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (SFT.replace("--train_type full", ""), "tuner_type: training a part|tuner_type=lora"),
        (SFT.replace("full", "lora"), "train_type=lora: training a part"),
        (SFT.replace("swift sft", "swift rlhf --rlhf_type dpo"), "preferences or rewards"),
        (SFT.replace("--packing", "--task_type embedding"), "another model than a decoder"),
        (SFT.replace("--packing", "--freeze_parameters_ratio 0.5"), "freezes parameters"),
        (MEGATRON.replace("--packing", "--tuner_type lora --packing"), "tuner_type=lora"),
    ],
)
def test_what_is_not_modelled_is_refused(read, script, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", script)


def test_a_model_that_is_split_layer_by_layer_is_refused(read):
    seen = f"CUDA_VISIBLE_DEVICES=0,1,2,3 {SFT.partition(chr(10))[2].replace('NPROC_PER_NODE=8', 'NPROC_PER_NODE=2')}"
    with pytest.raises(ConfigError, match="over 2 GPUs of each process"):
        read("run.sh", seen)
    with pytest.raises(ConfigError, match="over 4 GPUs of each process"):
        read("run.sh", seen.replace("NPROC_PER_NODE=2", ""))
    assert read("run.sh", seen.replace("NPROC_PER_NODE=2", "NPROC_PER_NODE=4")).hardware.devices == 4
    other = read("run.sh", SFT, hardware="h100-16")
    assert "the command starts 8 ranks; the plan is for the 16 devices that were said" in other.notes


def test_a_command_in_quotes_of_another(read):
    inner = SFT.replace('"$MODEL"', "$MODEL")
    run = read("run.sh", f'MODEL=Qwen3-8B\ndocker exec box bash -lc "\n{inner}"\n')
    assert str(run.plan) == "data=8 microbatches=4 remat=full"
    with pytest.raises(ConfigError, match="has no command of"):
        read("run.sh", 'echo "swift sft --model x"\nlog "== swift sft, then --eval =="\n')


ARGUMENTS = {
    "swift_version": "4.0", "global_world_size": 8, "model": "Qwen/Qwen3-8B", "model_type": "qwen3",
    "tuner_type": "full", "torch_dtype": "bfloat16", "bf16": True, "fp16": False, "max_length": 4096,
    "per_device_train_batch_size": 1, "gradient_accumulation_steps": 8, "gradient_checkpointing": True,
    "sequence_parallel_size": 1, "lora_rank": 8, "task_type": "causal_lm", "deepspeed": DEEPSPEED | {
        "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"},
}  # fmt: skip


def test_the_arguments_that_a_run_records(read):
    run = read("args.json", json.dumps(ARGUMENTS))
    assert str(run.plan) == "data=8 microbatches=8 remat=full offload=optimizer"
    assert (run.workload.global_batch, run.model.layers, run.hardware.devices) == (64, 36, 8)
    with pytest.raises(ConfigError, match="tuner_type=lora"):
        read("args.json", json.dumps(ARGUMENTS | {"tuner_type": "lora"}))
    with pytest.raises(ConfigError, match="preferences or rewards"):
        read("args.json", json.dumps(ARGUMENTS | {"rlhf_type": "dpo"}))
    own = {"tensor_model_parallel_size": 2, "micro_batch_size": 1, "global_batch_size": 32, "deepspeed": None}
    assert read("args.json", json.dumps(ARGUMENTS | own)).plan.degree("model") == 2


def test_frozen_parameters_of_a_decoder_are_refused_under_both(read):
    for script in (SFT, MEGATRON):
        with pytest.raises(ConfigError, match="freezes parameters"):
            read("run.sh", f"{script.rstrip()} --freeze_parameters visual model.embed_tokens\n")
        assert read("run.sh", f"{script.rstrip()} --freeze_parameters visual\n").plan is not None
