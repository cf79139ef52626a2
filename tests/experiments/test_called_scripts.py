"""Scripts that hand over to one beside them, with variables, options of Slurm, and arguments."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

JOB = """#!/bin/bash
#SBATCH --ntasks-per-node=8
LAYERS=$1
TP=${2:-1}
CMD="python pretrain_gpt.py $SHAPES --num-layers $LAYERS --tensor-model-parallel-size $TP --seq-length 2048 --bf16"
srun -l sh -c "${CMD} --micro-batch-size 1 --global-batch-size 64 --max-position-embeddings 2048 --vocab-size 50304"
"""
SHAPES = 'export SHAPES="--hidden-size 4096 --num-attention-heads 32 --num-query-groups 8"\n'


@pytest.mark.parametrize(
    "call",
    [
        "sbatch --nodes=2 job.sh 24 4",
        "sbatch -N 2 \\\n  ./job.sh 24 \\\n  4 > log",
        'bash "$HERE/job.sh" 24 4 | tee log',
    ],
)
def test_the_script_that_is_called_is_read_with_what_it_is_given(read, tmp_path, call):
    (tmp_path / "job.sh").write_text(JOB)
    run = read("submit.sh", f"mkdir -p logs\n{SHAPES}{call}\n", hardware="h100-16")
    assert (run.model.layers, run.model.d_model, run.plan.degree("model"), run.plan.degree("replica")) == (
        24,
        4096,
        4,
        4,
    )
    assert "submit.sh hands over to job.sh, which is read with what it sets" in run.notes


def test_variables_of_the_call_are_set(read, tmp_path):
    (tmp_path / "job.sh").write_text(JOB.replace("LAYERS=$1\nTP=${2:-1}", "LAYERS=${DEPTH:-8}\nTP=${TP:-1}"))
    run = read("submit.sh", f"{SHAPES}DEPTH=24 \\\nTP=2 \\\n/opt/job.sh\n", hardware="h100-16")
    assert (run.model.layers, run.plan.degree("model")) == (24, 2)


@pytest.mark.parametrize("runs", ["docker exec box bash -lc", "bash -c"])
def test_what_a_container_is_told_to_run_is_read_with_its_variables(read, tmp_path, runs):
    (tmp_path / "job.sh").write_text(JOB.replace("LAYERS=$1\nTP=${2:-1}", "LAYERS=${DEPTH:-8}\nTP=${TP:-1}"))
    call = f'{runs} "cd /work && \\\n  DEPTH=24 TP=2 \\\n  bash job.sh" | tee log\n'
    run = read("submit.sh", f"{SHAPES}{call}", hardware="h100-16")
    assert (run.model.layers, run.plan.degree("model")) == (24, 2)
    with pytest.raises(ConfigError, match=r"give job\.sh, which it (?:hands over to|names)"):
        read("submit.sh", f"{SHAPES}{call.replace('DEPTH=24', '$MORE DEPTH=24')}", hardware="h100-16")


def test_a_script_of_another_folder_is_found_by_its_path(read, tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.sh").write_text(JOB)
    run = read("submit.sh", f"bash setup.sh\n{SHAPES}bash jobs/job.sh 24 4\n", hardware="h100-16")
    assert run.model.layers == 24


def test_what_slurm_is_told_is_how_many_devices_there_are(read, tmp_path):
    (tmp_path / "job.sh").write_text(JOB)
    assert read("submit.sh", f"N=2\n{SHAPES}sbatch --nodes=$N job.sh 24\n").hardware.devices in (16, None)


def test_a_script_that_trains_nothing_is_passed_over(read, tmp_path):
    (tmp_path / "setup.sh").write_text("pip install torch\n")
    (tmp_path / "job.sh").write_text(JOB)
    assert read("submit.sh", f"{SHAPES}bash setup.sh\nbash job.sh 12\n", hardware="h100-16").model.layers == 12


def test_arguments_that_are_gone_through_are_not_guessed(read, tmp_path):
    (tmp_path / "job.sh").write_text("while (( $# )); do LAYERS=$2; shift 2; done\n" + JOB)
    with pytest.raises(ConfigError, match=r"give job\.sh, which it names"):
        read("submit.sh", f"{SHAPES}bash job.sh --layers 12\n", hardware="h100-16")
