"""Scripts that start a run on other hosts, or by MPI, and what they are told to give where nothing is read."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import TITAN, read

__all__ = ["read"]

ARGUMENTS = (
    "pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 12 --hidden-size 2048 --num-attention-heads 16"
    " --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 288 --vocab-size 50304"
)
TORCHRUN = f"torchrun --nnodes 3 --nproc_per_node 8 --node_rank ${{RANK:-0}} {ARGUMENTS}"


@pytest.mark.parametrize(
    "script",
    [
        f'for h in a b c; do\n  ssh -n $h "cd /srv; {TORCHRUN}" &\ndone\n',
        f"for h in $(cat hosts); do\nssh $h << 'END'\ncd /srv\n{TORCHRUN}\nEND\ndone\n",
        f"for h in $(cat hosts); do\nssh $h << END\ncd /srv\n{TORCHRUN}\nEND\ndone\n",
        f"cat > node.sh <<'END'\n{TORCHRUN}\nEND\npdsh -w a,b,c bash node.sh\n",
    ],
)
def test_what_other_hosts_are_told_to_run_is_read(read, script):
    run = read("launch.sh", script)
    assert (run.hardware.devices, str(run.plan)) == (24, "replica=12 model=2 microbatches=6 remat=none")


@pytest.mark.parametrize(
    "script",
    [
        f"if ! {TORCHRUN}; then\n  exit 1\nfi\n",
        f"until OMP_NUM_THREADS=1 {TORCHRUN}\ndo\n  sleep 5\ndone\n",
        f'if srun --ntasks-per-node=1 bash -lc "\n cd /srv\n {TORCHRUN}\n"; then\n  exit 0\nfi\n',
        f"if true; then\n  if timeout 3600 {TORCHRUN}; then\n    exit 0\n  fi\nfi\n",
    ],
)
def test_a_training_that_is_a_condition_is_read(read, script):
    run = read("launch.sh", script)
    assert (run.hardware.devices, str(run.plan)) == (24, "replica=12 model=2 microbatches=6 remat=none")
    undecided = read("launch.sh", f"LR=1\n{script.replace('exit', 'NNODES=9; exit')}")
    assert undecided.plan == run.plan


def test_the_ranks_of_mpi_are_the_devices(read, tmp_path):
    run = read("launch.sh", f"mpirun -np 24 -H a:8,b:8,c:8 --bind-to none python {ARGUMENTS}\n")
    assert (run.hardware.devices, run.plan.degree("replica")) == (24, 12)
    (tmp_path / "llama.toml").write_text(TITAN)
    wrapped = (
        "EXE=mpiexec\n$EXE -n 64 -ppn 8 python -u start.py \\\n  --job.config_file llama.toml \\\n --training.steps=9\n"
    )
    run = read("launch.sh", wrapped)
    assert (run.hardware.devices, run.plan.degree("model")) == (64, 4)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("SIZE=8 \\\nGBS=16 \\\n/opt/bench/sft_llama.sh\n", "give sft_llama.sh, which it hands over to"),
        ("torchrun --nproc_per_node=8 tools/tune_it.py --tp 2\n", "it starts tune_it.py, whose settings are not known"),
        ('srun bash -c "python -m ours.train --size 7b"\n', r"it starts ours\.train, whose settings are not known"),
    ],
)
def test_what_starts_nothing_that_is_read_says_what_it_starts(read, script, said):
    with pytest.raises(ConfigError) as error:
        read("launch.sh", script)
    assert error.match(said) or said in (error.value.hint or "")
