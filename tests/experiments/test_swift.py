"""ms-swift: its commands under the Trainer and under Megatron, and the arguments that a run of it records."""

from asap.diagnosis.diagnose import diagnose
from tests.experiments.stack_configurations import read

__all__ = ["read"]

MEGATRON = """NPROC_PER_NODE=8 NNODES=2 megatron sft \\
    --load /models/Qwen3-30B-A3B-mcore --tensor_model_parallel_size 2 --expert_model_parallel_size 8 \\
    --expert_tensor_parallel_size 1 --micro_batch_size 2 --global_batch_size 64 --max_length 4096 --packing true \\
    --sequence_parallel true
"""


def test_a_profile_is_asked_for_by_hand(read):
    missing = diagnose(None, stack="megatron", settings=read("run.sh", MEGATRON).hyperparameters).missing
    assert ["use-pytorch-profiler" in (gap.capture or "") for gap in missing] == [False]
