"""Megatron's collectives, layers that are not the model's own, and what its versions and forks have."""

import pytest

from asap.diagnosis.diagnose import diagnose
from asap.plans import Plan
from asap.plans.validity import violations
from asap.proposals.launch import launcher_line
from asap.stacks.constraints import constraints_of
from asap.study.study import study_of
from tests.experiments.stack_configurations import MEGATRON, NEMO

EXPERTS = "--num-experts 64 --moe-ffn-hidden-size 1024"


def said(read, words):
    return read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {words}"))


@pytest.mark.parametrize(("words", "dispatcher"), [
    (EXPERTS, "all_gather"), (f"{EXPERTS} --moe-token-dispatcher-type allgather", "all_gather"),
    (f"{EXPERTS} --moe-token-dispatcher-type alltoall", "all_to_all"),
    (f"{EXPERTS} --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep", "deepep"),
    (f"{EXPERTS} --moe-token-dispatcher-type flex --moe-enable-deepep", "deepep"),
    ("--moe-token-dispatcher-type flex", None),
])  # fmt: skip
def test_how_tokens_reach_their_experts(read, words, dispatcher):
    assert said(read, words).workload.expert_dispatcher == dispatcher


def test_collectives_of_tensor_parallelism_beside_products(read):
    assert said(read, "").workload.overlaps_tensor is None
    assert said(read, "--tp-comm-overlap").workload.overlaps_tensor is True
    assert said(read, "--overlap-grad-reduce").workload.overlaps_reduction is True
    nemo = NEMO.replace("sequence_parallel: true", "sequence_parallel: true\n  ub_tp_comm_overlap: true")
    assert read("llama3.yaml", nemo).workload.overlaps_tensor is True


def test_layers_of_multi_token_prediction_are_the_models(read):
    run = said(read, f"{EXPERTS} --mtp-num-layers 1")
    assert run.model.mtp_layers == 1
    assert not [note for note in run.notes if "mtp" in note]


def test_stages_divide_layers_with_the_embedding_and_the_loss_where_these_count(read):
    counted = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"
    text = MEGATRON.replace("--bf16", f"--bf16 {counted}").replace("--num-layers 32", "--num-layers 30")
    run = read("train.sh", text, hardware="h100-64")
    assert (run.model.layers, run.workload.pipelined_layers) == (30, 32)
    plan = Plan.parse("replica=4 model=2 stage=8 microbatches=16 remat=full")
    rules = [each.rule for each in violations(plan, constraints_of(run.model, run.workload, 64))]
    assert "layers" not in rules
    assert "without" not in launcher_line(study_of(run), plan)


def test_a_host_that_waits_for_each_kernel(read):
    waiting = MEGATRON.replace("export NCCL_IB_TIMEOUT=19", "export NCCL_IB_TIMEOUT=19 CUDA_LAUNCH_BLOCKING=1")
    assert read("train.sh", waiting).workload.launch_blocking is True
    assert said(read, "").workload.launch_blocking is None


SWIFT = """NPROC_PER_NODE=8 NNODES=2 megatron sft \\
    --load /models/Qwen3-30B-A3B-mcore --tensor_model_parallel_size 2 --expert_model_parallel_size 8 \\
    --expert_tensor_parallel_size 1 --micro_batch_size 2 --global_batch_size 64 --max_length 4096 --packing true
"""


@pytest.mark.parametrize(
    ("text", "own"), [(MEGATRON, True), (MEGATRON.replace("--bf16", "--bf16 --data-impl mmap"), False), (SWIFT, False)]
)
def test_a_profile_is_asked_for_by_what_the_version_has(read, text, own):
    missing = diagnose(None, stack="megatron", settings=read("train.sh", text).hyperparameters).missing
    assert [("--use-pytorch-profiler" in (gap.capture or ""), bool(gap.capture)) for gap in missing] == [(own, True)]
