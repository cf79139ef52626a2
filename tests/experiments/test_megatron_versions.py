"""Earlier versions and forks of Megatron-LM: their words are read, and none that they lack is proposed."""

import pytest

from asap.diagnosis.diagnose import diagnose
from tests.experiments.stack_configurations import MEGATRON, read

__all__ = ["read"]

PLAIN = MEGATRON.replace(" --recompute-granularity full", "")


@pytest.mark.parametrize(("sign", "capture"), [("", "--use-pytorch-profiler"), ("--data-impl mmap", "torch.profiler")])
def test_a_profile_is_asked_for_by_what_the_version_has(read, sign, capture):
    run = read("train.sh", PLAIN.replace("--bf16", f"--bf16 {sign}"))
    missing = diagnose(None, stack="megatron", settings=run.hyperparameters).missing
    assert [capture in (gap.capture or "") for gap in missing] == [True]
    assert ("--use-pytorch-profiler" in (missing[0].capture or "")) == (not sign)
