"""Tasks of SkyPilot and jobs whose commands are lines of a YAML."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import TITAN, read

__all__ = ["read"]

TASK = """
name: pretrain
num_nodes: 4
resources:
  accelerators: H100:8
  cloud: aws
envs:
  TP: 2
setup: pip install -r requirements.txt
run: |
  cd megatron
  torchrun --nnodes $SKYPILOT_NUM_NODES --nproc_per_node $SKYPILOT_NUM_GPUS_PER_NODE --node_rank $SKYPILOT_NODE_RANK \\
    pretrain_gpt.py --tensor-model-parallel-size $TP --num-layers 16 --hidden-size 2048 --num-attention-heads 16 \\
    --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 256 --vocab-size 50304
"""
JOB = """
target: {service: batch, name: cluster}
search:
  job_template:
    sku: 2xG8
    command:
      - pip install -e .
      - export CONFIG_FILE=llama.toml
      - torchrun --nnodes 2 --nproc_per_node 8 -m torchtitan.train --job.config_file $$CONFIG_FILE
"""


def test_a_task_has_its_nodes_and_variables(read):
    run = read("task.yaml", TASK)
    assert (run.hardware.chip, run.hardware.devices) == ("h100", 32)
    assert str(run.plan) == "replica=16 model=2 microbatches=8 remat=none"
    said = read("task.yaml", TASK.replace("H100:8", "{A100-80GB: 4}"), hardware="h100-32")
    assert said.hardware.chip == "h100"


@pytest.mark.parametrize(
    ("choice", "chip", "devices"),
    [
        ("{H100:8, H200:8}", None, 32),
        ("['H100:8', 'H200:8']", None, 32),
        ("{H100:8, A100-80GB:4}", None, None),
        ("{H200: 8}", "h200", 32),
        ("SOMETHING:8", None, 32),
    ],
)
def test_a_task_that_leaves_its_accelerators_to_a_choice(read, choice, chip, devices):
    run = read("task.yaml", TASK.replace("H100:8", choice))
    assert (run.hardware.chip, run.hardware.devices) == (chip, devices)


def test_a_job_of_lines(read, tmp_path):
    (tmp_path / "llama.toml").write_text(TITAN)
    run = read("job.yaml", JOB)
    assert (run.hardware.devices, run.plan.degree("model")) == (16, 4)


def test_a_task_of_maxtext(read):
    start = (
        "python3 -m MaxText.train MaxText/configs/base.yml model_name=llama3.1-8b per_device_batch_size=2 run_name=x"
    )
    run = read("task.yaml", f"resources: {{accelerators: 'tpu-v5e-16'}}\nrun: {start}\n", hardware="v5e-16")
    assert (run.model.layers, run.workload.global_batch) == (32, 32)


def test_commands_that_start_nothing_known_are_refused_as_those_of_a_script(read):
    with pytest.raises(ConfigError, match="has no command of MaxText"):
        read("task.yaml", "run: python serve.py\nresources: {accelerators: H100:8}\n")
    with pytest.raises(ConfigError, match="has no command of MaxText"):
        read("task.yaml", "num_nodes: 2\nrun: ./start-it\nresources: {accelerators: H100:8}\n")
