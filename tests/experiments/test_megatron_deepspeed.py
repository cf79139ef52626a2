"""Megatron-DeepSpeed: its DeepSpeed configuration decides ZeRO and offloading, and its experts are DeepSpeed's."""

import pytest

from asap.core.errors import ConfigError, PlanError
from asap.plans import Plan
from asap.stacks.launchers import inexpressible, launch_lines
from tests.experiments.stack_configurations import MEGATRON, read

__all__ = ["read"]

FLAT = MEGATRON.replace("TP=${1:-4}", "TP=1").replace("--pipeline-model-parallel-size 2", "--no-pipeline-parallel")
NAMED = "--bf16 --deepspeed --deepspeed_config ds.json"


def script(arguments: str, of: str = FLAT, before: str = "") -> str:
    return before + of.replace("--bf16", arguments)


def line(run, plan: str) -> str:
    return launch_lines(Plan.parse(plan), "megatron", run.hyperparameters, global_batch=256, layers=32)


def written(stage: int, more: str = "") -> str:
    return f'cat > ds.json <<EOT\n{{"train_batch_size": $GB, "zero_optimization": {{"stage": {stage}{more}}}}}\nEOT\n'


def test_the_configuration_that_a_script_writes_decides_the_stage(read):
    run = read("run.sh", script(NAMED, before=written(3)))
    assert (str(run.plan), run.workload.zero_stage) == ("data=64 microbatches=2 remat=full", 3)
    assert run.workload.attention == "fused softmax", "FlashAttention is an option there"
    second = read("run.sh", script(NAMED, before=written(2)))
    assert (second.plan.degree("replica"), second.workload.zero_stage) == (64, 2)
    both = read("run.sh", script(f"{NAMED} --zero-stage 1", before=written(3)))
    assert both.workload.zero_stage == 3
    assert any("--zero-stage is 1; stage 3 of the DeepSpeed configuration is run" in note for note in both.notes)


def test_the_configuration_decides_the_precision(read):
    enabled = written(1).replace('{"train', '{"fp16": {"enabled": true}, "train')
    run = read("run.sh", script(NAMED, before=enabled))
    assert run.workload.precision == "fp16"
    assert any("--fp16 is not said" in note for note in run.notes)
    same = read("run.sh", script(NAMED, before=enabled.replace("fp16", "bf16")))
    assert (same.workload.precision, [note for note in same.notes if "not said; bf16" in note]) == ("bf16", [])


def test_a_configuration_made_of_a_template_is_asked_for(read):
    run = read("run.sh", script(NAMED, before='sed "s/STAGE/3/" template.json > ds.json\n'))
    assert run.plan is None
    assert any("hangs on zero_stage" in note for note in run.notes)


def test_a_stage_that_is_nowhere_is_asked_for(read):
    run = read("run.sh", script(NAMED))
    assert (run.plan, run.workload.zero_stage) == (None, None)
    assert any("ds.json, which has the ZeRO stage, is not there" in note for note in run.notes)
    told = read("run.sh", script(NAMED), "zero_stage=3")
    assert (str(told.plan), told.workload.zero_stage) == ("data=64 microbatches=2 remat=full", 3)
    assert read("run.sh", script(f"{NAMED} --zero-stage 2")).workload.zero_stage == 2


def test_a_configuration_is_not_used_without_deepspeed(read):
    run = read("run.sh", script(f"{NAMED.replace('--deepspeed ', '')}", MEGATRON, written(2)))
    assert (run.plan.degree("stage"), run.workload.framework, run.workload.zero_stage) == (2, "Megatron-Core", 1)
    assert "--deepspeed_config is not used without --deepspeed" in run.notes


def test_devices_of_the_launcher_of_deepspeed(read):
    launched = FLAT.replace("torchrun --nproc_per_node $GPUS_PER_NODE --nnodes", "deepspeed --num_gpus 4 --num_nodes")
    assert read("run.sh", script("--bf16 --deepspeed --zero-stage 1", launched)).hardware.devices == 32


def test_what_deepspeed_refuses_is_refused(read):
    with pytest.raises(ConfigError, match="zero_stage is 3, which DeepSpeed refuses with pipeline stages"):
        read("run.sh", script("--bf16 --deepspeed --zero-stage 3", MEGATRON))
    with pytest.raises(ConfigError, match="zero_stage must be 0 to 3"):
        read("run.sh", script("--bf16 --deepspeed --zero-stage 4"))


def test_plans_of_stage_three_in_its_words(read):
    run = read("run.sh", script("--bf16 --deepspeed --zero-stage 3"))
    assert line(run, "data=16 model=4 microbatches=8 remat=full") == "--tensor-model-parallel-size 4"
    back = line(run, "replica=64 microbatches=2 remat=full")
    assert back == "--zero-stage 0  # change zero_optimization.stage of the DeepSpeed configuration likewise"
    for plan in ("replica=2 data=32", "data=32 stage=2", "data=8 expert=8", "data=64 offload=optimizer"):
        assert inexpressible(Plan.parse(plan), "megatron", run.hyperparameters, 256, 32), plan
    first = read("run.sh", script("--bf16 --deepspeed --zero-stage 1"))
    with pytest.raises(PlanError, match="no arguments for FSDP"):
        line(first, "data=64")
    offloads = read("run.sh", script(NAMED, before=written(2, ', "offload_optimizer": {"device": "cpu"}')))
    assert line(offloads, f"{offloads.plan}") == ""


EXPERTS = "--bf16 --deepspeed --zero-stage 1 --num-experts 64 --moe-expert-parallel-size 8"


def test_experts_of_deepspeed(read):
    run = read("run.sh", script(f"{EXPERTS} --topk 2 --moe-train-capacity-factor 1.5"))
    model = run.model
    assert (model.experts, model.experts_per_token, model.moe_every, model.expert_d_ff) == (64, 2, 2, 14336)
    assert str(run.plan) == "replica=8 expert=8 microbatches=2 remat=full"
    assert (run.workload.capacity_factor, run.workload.zero_stage) == (1.5, 1)
    plain = read("run.sh", script(f"{EXPERTS} --expert-interval 1 --disable-moe-token-dropping"))
    assert (plain.model.experts_per_token, plain.model.moe_every) == (1, 1)
    assert plain.workload.capacity_factor is None
    assert read("run.sh", script(f"{EXPERTS} --mlp-type residual")).model.shared_experts == 1
    narrow = script(EXPERTS).replace("--ffn-hidden-size 14336", "").replace("--swiglu", "")
    assert read("run.sh", narrow).model.expert_d_ff == 4 * 4096


def test_experts_of_deepspeed_in_its_words(read):
    run = read("run.sh", script(EXPERTS))
    assert line(run, "replica=4 expert=16 microbatches=2 remat=full") == "--moe-expert-parallel-size 16"
    for plan in ("replica=4 model=2 expert=8", "replica=4 stage=2 expert=8", "replica=4 seq=2 expert=8"):
        assert inexpressible(Plan.parse(plan), "megatron", run.hyperparameters, 256, 32), plan
    split = read("run.sh", script(f"{EXPERTS} --enable-expert-tensor-parallelism"))
    assert "--tensor-model-parallel-size 2" in line(split, "replica=4 model=2 expert=8 microbatches=4 remat=full")
    unknown = read("run.sh", script(EXPERTS.replace("size 8", "size $(cat ep)")))
    assert any("hangs on moe_expert_parallel_size" in note for note in unknown.notes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (EXPERTS.replace("--num-experts 64", "--num-experts 32 64"), "different numbers of experts"),
        (f"{EXPERTS} --tensor-model-parallel-size 2", "experts that tensor parallelism does not split"),
    ],
)
def test_experts_that_are_not_modelled(read, arguments, said):
    of = FLAT.replace("--tensor-model-parallel-size $TP", "") if "tensor" in arguments else FLAT
    with pytest.raises(ConfigError, match=said):
        read("run.sh", script(arguments, of))
