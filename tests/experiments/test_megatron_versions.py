"""Earlier versions and forks of Megatron-LM: a profile is asked for by what they have."""

import pytest

from asap.diagnosis.diagnose import diagnose
from tests.experiments.stack_configurations import MEGATRON

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
