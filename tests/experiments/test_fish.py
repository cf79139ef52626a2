"""Scripts of Fish."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.experiments.shell import read_commands
from asap.experiments.shell.fish import from_fish
from tests.experiments.stack_configurations import read

__all__ = ["read"]

SCRIPT = r"""#!/usr/bin/env fish
set -gx CUDA_DEVICE_MAX_CONNECTIONS 1
set --local nodes 2
set -q TP; or set TP 4
set shape --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
    --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000
if test $TP -gt 1
    set -a shape --sequence-parallel
else if test $TP -eq 1
    set -a shape --use-distributed-optimizer
end
torchrun --nproc_per_node 8 --nnodes $nodes pretrain_gpt.py $shape --tensor-model-parallel-size $TP \
    --micro-batch-size 1 --global-batch-size (math "$nodes * 32") --bf16 $argv
"""


def run(script: str) -> list[str]:
    """The commands that a script comes to."""
    commands = read_commands(from_fish(script))
    return [command.text.strip() for command in commands if command.text.startswith("run") and command.certain]


def test_a_launch_script(read):
    found = read("train.fish", SCRIPT)
    assert str(found.plan) == "replica=4 model=4 microbatches=16 remat=none"
    assert (found.workload.sequence_parallel, found.workload.global_batch) == (True, 64)
    assert read("train.fish", SCRIPT, "TP=1").plan.degree("replica") == 16
    by_first_line = read("train", SCRIPT)
    assert by_first_line.plan == found.plan


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("for size in 1 2\n  run $size\nend", ["run $size"]),
        ("function go\n  run $argv[1]\nend\ngo 7", ["run 7"]),
        ("set a x y z\nrun $a[2]", ["run y"]),
        ("set a 3\ntest $a -eq 3; and run yes\ntest $a -eq 4; and run no", ["run yes"]),
        ("set a 2\nset b (math $a \\* 4 + 1)\nrun $b", ["run 9"]),
        ("set h (hostname)\nrun $h", ["run $h"]),
        ("set -e a\nrun (count $argv)", ["run 0"]),
        ("switch big\n  case small\n    run 1\n  case big huge\n    run 2\nend", ["run 2"]),
    ],
)
def test_what_fish_says_otherwise(script, commands):
    assert run(script) == commands


@given(st.text(alphabet="set if end()$argv[1]-x \n;and'\"\\*{", max_size=200))
def test_any_text_is_read(text):
    assert from_fish(text).count("\n") >= text.rstrip("\n").count("\n") - 1
