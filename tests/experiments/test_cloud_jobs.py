"""Jobs of Vertex AI, Azure ML and Beaker, and JSON as people write it."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

MAXTEXT = (
    "python3 MaxText/train.py MaxText/configs/base.yml model_name=llama2-7b per_device_batch_size=2"
    " max_target_length=4096 ici_fsdp_parallelism=8 dcn_data_parallelism=4 hardware=gpu"
)
POOL = """{
      "machineSpec": {"machineType": "a3-highgpu-8g", "acceleratorType": "NVIDIA_H100_80GB", "acceleratorCount": 8,},
      "replicaCount": "%d",
      "containerSpec": {"imageUri": "eu.gcr.io/x/y:z", %s},
    },"""
HELD = '"env": [{"name": "GREETING", "value": "a, ]"}, {"name": "COMMAND", "value": "%s"},], "command": ["run.sh"]'
MEGATRON = """
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
inputs:
  base: {path: azureml://registries/azureml-meta/models/Llama-3.1-8B/versions/4}
  rows: 4
command: >-
  torchrun --nproc_per_node 8 --nnodes 2 train.py --model_name_or_path ${{inputs.base}} --block_size 4096
  --per_device_train_batch_size ${{inputs.rows}} --output_dir ${{outputs.model}} --gradient_checkpointing true
distribution: {type: pytorch, process_count_per_instance: 1}
resources: {instance_count: 2, instance_type: Standard_ND96isr_H100_v5}
"""
BEAKER = """
version: v2
tasks:
  - image: {beaker: someone/llm}
    command: ['/bin/sh', '-c']
    arguments: ['deepspeed train.py --deepspeed ds.conf --model_name_or_path Qwen/Qwen3-8B --block_size 2048
      --per_device_train_batch_size $ROWS --do_train --bf16']
    envVars: [{name: ROWS, value: 4}]
    replicas: 2
    resources: {gpuCount: 4}
"""


def vertex(container: str) -> str:
    pools = POOL % (1, container) + POOL % (3, container)
    return f'{{"displayName": "x", "jobSpec": {{"workerPoolSpecs": [{pools.rstrip(",")}]}}}}'


@pytest.mark.parametrize("container", [HELD % MAXTEXT, f'"command": ["bash", "-c"], "args": ["{MAXTEXT}",]'])
def test_a_job_of_vertex_is_read_with_its_machines(read, container):
    run = read("job.json", vertex(container))
    assert (run.model.name, run.hardware.devices, run.workload.global_batch) == ("llama2-7b", 32, 64)
    assert run.hardware.name.startswith("a3-highgpu-8g")


def test_pools_of_vertex_in_yaml(read):
    run = read(
        "job.yaml",
        "worker_pool_specs:\n- machine_spec: {machine_type: a3-highgpu-8g, accelerator_count: 8}\n"
        f"  replica_count: 4\n  container_spec:\n    image_uri: x\n    args: [bash, -c, '{MAXTEXT}']\n",
    )
    assert (run.hardware.devices, run.plan.devices) == (32, 32)


def test_a_job_whose_image_decides_is_named(read):
    with pytest.raises(ConfigError, match="leaves to its image"):
        read("job.json", vertex('"env": [{"name": "A", "value": "python"}]'))


def test_inputs_of_azure_are_filled_in(read):
    run = read("job.yml", MEGATRON)
    assert (run.model.layers, run.hardware.devices, run.workload.global_batch) == (32, 16, 64)
    assert "h100" in run.hardware.chip


def test_processes_that_azure_starts_are_counted(read):
    command = (
        "python pretrain_gpt.py --num-layers 8 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048"
        " --micro-batch-size 2 --global-batch-size 16 --tensor-model-parallel-size 8 --vocab-size 50257 --bf16"
    )
    run = read(
        "job.yml",
        f"command: {command}\nenvironment: azureml:x@latest\ncompute: azureml:y\n"
        "distribution: {type: pytorch, process_count_per_instance: 8}\nresources: {instance_count: 2}\n",
    )
    assert (run.hardware.devices, run.plan.degree("replica")) == (16, 2)


def test_a_task_of_beaker_is_read(read, tmp_path):
    (tmp_path / "ds.conf").write_text('{"zero_optimization": {"stage": 3,}, "bf16": {"enabled": "auto"},}')
    run = read("job.yaml", BEAKER)
    assert (run.hardware.devices, run.workload.global_batch, run.workload.zero_stage) == (8, 32, 3)


def test_commas_that_json_does_not_have_are_left_out_and_texts_stay(read):
    text = '{"model_type": "llama", "hidden_size": 4096, "name_or_path": "a, ] b", "num_hidden_layers": 32,\n}\n'
    assert read("config.json", text).model.layers == 32


def test_other_slips_of_json_are_told_with_their_line(read):
    with pytest.raises(ConfigError, match="is not JSON") as caught:
        read("config.json", '{"model_type": "llama",\n "hidden_size": 4096,, }')
    assert str(caught.value.where).endswith("config.json:2")
