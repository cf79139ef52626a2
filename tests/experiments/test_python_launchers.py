"""Python programs that start a launcher, read without running them."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

LAUNCHER = """
import argparse
import os
import subprocess

SHAPES = ["--num-layers", "24", "--hidden-size", "2048", "--num-attention-heads", "16"]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tp", type=int, default=4)
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    nodes = int(os.environ.get("NNODES", "2"))
    command = ["torchrun", "--nproc_per_node", "8", f"--nnodes={nodes}", "pretrain_gpt.py", *SHAPES]
    command += ["--tensor-model-parallel-size", str(args.tp)]
    command.extend("--seq-length 2048 --max-position-embeddings 2048 --vocab-size 50304 --bf16".split())
    if args.profile:
        command.append("--profile")
    command = command + ["--micro-batch-size", str(2 * 1), "--global-batch-size", "64"]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
"""


def test_a_command_that_is_put_together_is_read_with_the_defaults_that_it_takes(read):
    run = read("launch.py", LAUNCHER, hardware="h100-16")
    assert (run.model.layers, run.plan.degree("model"), run.plan.degree("replica")) == (24, 4, 4)
    assert (run.plan.microbatches, run.workload.global_batch) == (8, 64)
    assert any("the defaults are taken: NNODES=2, profile=False, tp=4" in note for note in run.notes)
    assert read("launch.py", LAUNCHER, "tensor_model_parallel_size=8", hardware="h100-16").plan.degree("model") == 8


def test_a_command_in_one_text_is_read(read):
    start = 'os.system(f"deepspeed --num_gpus {GPUS} train.py --deepspeed ds.json --model_name_or_path {MODEL}")'
    text = f'import os\nGPUS = os.getenv("GPUS", 4)\nMODEL = "Qwen/" + "Qwen3-8B"\n{start}\n'
    with pytest.raises(ConfigError, match=r"starts DeepSpeed with ds\.json, which is not there"):
        read("launch.py", text)


def test_a_command_of_maxtext_is_read_and_one_of_no_stack_named(read):
    start = "python3 -m MaxText.train base.yml model_name=llama2-7b per_device_batch_size=2 max_target_length=2048"
    text = f"import os\nSTEPS = os.getenv('STEPS', '20')\nos.system(f'{start} steps={{STEPS}}')\n"
    run = read("launch.py", text, hardware="v5e-16")
    assert (run.model.layers, run.workload.global_batch) == (32, 32)
    assert any("the defaults are taken: STEPS=20" in note for note in run.notes)
    with pytest.raises(ConfigError, match=r"has no command of .*: it starts ours\.py, whose settings are not known"):
        read("launch.py", "import subprocess\nsubprocess.run(['torchrun', '--nproc_per_node', '8', 'ours.py'])\n")


def test_what_only_a_run_can_tell_stays_open(read):
    text = LAUNCHER.replace("str(args.tp)", "str(detect())")
    run = read("launch.py", text, hardware="h100-16")
    assert run.plan is None
    assert any("hangs on tensor_model_parallel_size" in note for note in run.notes)


@pytest.mark.parametrize(
    "more", ["x.append(x)\n" * 3000, "t = 'a'\nt += t\n" * 200, "import subprocess\nx += [*x, *x]\n" * 99]
)
def test_growth_without_end_is_cut(read, more):
    with pytest.raises(ConfigError):
        read("launch.py", f"import subprocess\nx = ['a', 'b', 'c']\n{more}\nsubprocess.run(x)\n")
