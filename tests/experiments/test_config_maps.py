"""Configurations that the ConfigMaps of a manifest hold, for the job beside them."""

import json

import pytest
import yaml

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import MEGATRON, NEMO, TITAN, read

__all__ = ["read"]

FSDP = """
distributed_type: FSDP
num_processes: 16
num_machines: 2
mixed_precision: bf16
fsdp_config: {fsdp_version: 2, fsdp_activation_checkpointing: true}
"""
ARGUMENTS = """
model_name_or_path: Qwen/Qwen3-8B
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
max_length: 4096
packing: true
"""
START = "accelerate launch --config_file /etc/train/fsdp.yaml sft.py --config /etc/train/sft.yaml"


def manifest(files: dict[str, str], command: list[str], *, volume: dict | None = None, **container) -> str:
    """A ConfigMap and a job of two pods of eight GPUs that mounts it."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "train"}, "data": files}
    said = {
        "name": "trainer",
        "command": command,
        "resources": {"limits": {"nvidia.com/gpu": 8}},
        "volumeMounts": [{"name": "files", "mountPath": "/etc/train"}],
        **container,
    }
    pods = {"containers": [said], "volumes": [{"name": "files", **(volume or {"configMap": {"name": "train"}})}]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"parallelism": 2, "template": {"spec": pods}},
    }
    return yaml.safe_dump_all([config_map, job], sort_keys=False)


def test_a_command_finds_the_files_that_its_container_mounts(read):
    run = read("job.yaml", manifest({"fsdp.yaml": FSDP, "sft.yaml": ARGUMENTS}, ["bash", "-c", START]))
    assert (str(run.plan), run.hardware.devices) == ("data=16 microbatches=4 remat=full", 16)
    assert (run.model.name, run.workload.global_batch, run.workload.sequence_length) == ("Qwen/Qwen3-8B", 128, 4096)


def test_a_mounted_script_is_read_with_the_arguments_of_its_call(read):
    script = f"set -e\npip install trl\n{START} --per_device_train_batch_size ${{1:-2}} --bf16 ${{2}}\n"
    files = {"fsdp.yaml": FSDP, "sft.yaml": ARGUMENTS, "train.sh": script}
    run = read("job.yaml", manifest(files, ["bash", "/etc/train/train.sh", "4", "true"]))
    assert (run.workload.global_batch, run.workload.precision) == (256, "bf16")
    unsaid = read("job.yaml", manifest(files, ["bash", "-c", "bash /etc/train/train.sh $BATCH true"]))
    assert (unsaid.workload.global_batch, unsaid.workload.precision) == (None, "bf16")
    assert read("job.yaml", manifest(files, ["bash", "/etc/train/train.sh"])).workload.global_batch == 128


def test_lines_of_a_mounted_script_are_those_of_the_manifest(read):
    text = manifest({"run.sh": MEGATRON}, ["bash", "/etc/train/run.sh", "8"]).replace('"', "'")
    text = text.replace(text[text.index("run.sh:") : text.index("---\napi")], "run.sh: |\n" + _indented(MEGATRON))
    run = read("job.yaml", text)
    line = 1 + text.splitlines().index(next(line for line in text.splitlines() if "--seq-length" in line))
    assert run.provenance["workload.sequence_length"] == f"job.yaml:{line}: seq_length"
    assert (run.plan.degree("model"), run.hardware.devices) == (8, 16)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def test_items_sub_paths_and_projected_volumes_say_where_a_file_lies(read):
    start = "torchrun --nproc_per_node=8 --nnodes=2 -m torchtitan.train --job.config_file /opt/llama.toml"
    items = {"configMap": {"name": "train", "items": [{"key": "titan", "path": "llama.toml"}]}}
    mounts = [{"name": "files", "mountPath": "/opt/llama.toml", "subPath": "llama.toml"}]
    below = manifest({"titan": TITAN}, ["bash", "-c", start], volume=items, volumeMounts=mounts)
    assert read("job.yaml", below).plan.degree("model") == 4
    projected = {"projected": {"sources": [{"secret": {"name": "hf"}}, items]}}
    mounts = [{"name": "files", "mountPath": "/opt"}]
    both = manifest({"titan": TITAN}, ["bash", "-c", start], volume=projected, volumeMounts=mounts)
    assert read("job.yaml", both).plan.degree("model") == 4
    with pytest.raises(ConfigError, match=r"starts torchtitan with /opt/llama.toml, which is not there"):
        read("job.yaml", below.replace("name: train", "name: other", 1))


def test_variables_come_from_config_maps_as_well(read):
    files = {"fsdp.yaml": FSDP, "sft.yaml": ARGUMENTS, "BATCH": "8", "steps": "2"}
    named = {"valueFrom": {"configMapKeyRef": {"name": "train", "key": "steps"}}}
    text = manifest(
        files,
        ["bash", "-c", f"{START} --per_device_train_batch_size $BATCH --gradient_accumulation_steps $STEPS"],
        envFrom=[{"configMapRef": {"name": "train"}}],
        env=[{"name": "STEPS", **named}],
    )
    assert read("job.yaml", text).workload.global_batch == 8 * 2 * 16


def test_a_program_of_another_kind_is_read_by_the_configuration_that_it_mounts(read):
    run = read("job.yaml", manifest({"nemo.yaml": NEMO}, ["python", "/opt/pretrain.py", "--config-path=/etc/train"]))
    assert (run.workload.framework, run.hardware.devices, run.workload.global_batch) == ("NeMo", 16, 256)
    with pytest.raises(ConfigError, match=r"manifest \(Job\) and runs python /opt/pretrain.py.* no training command"):
        read("job.yaml", manifest({"nemo.yaml": NEMO, "other.yaml": NEMO}, ["python", "/opt/pretrain.py"]))


def test_axolotl_and_llama_factory_start_with_a_yaml_that_is_mounted(read):
    axolotl = "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 2\nsequence_len: 4096\nsample_packing: true\n"
    axolotl += (
        "fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\ngradient_accumulation_steps: 1\nbf16: true\n"
    )
    start = "accelerate launch -m axolotl.cli.train /etc/train/run.yml --gradient-accumulation-steps 4"
    run = read("job.yaml", manifest({"run.yml": axolotl}, ["bash", "-c", start]))
    assert (run.workload.framework, run.plan.microbatches, run.workload.global_batch) == ("Axolotl FSDP", 4, 128)
    zero = {"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}}
    factory = (
        f"{ARGUMENTS}stage: sft\nfinetuning_type: full\ncutoff_len: 2048\nbf16: true\ndeepspeed: {json.dumps(zero)}"
    )
    start = ["llamafactory-cli", "train", "/etc/train/sft.yaml", "per_device_train_batch_size=1"]
    run = read("job.yaml", manifest({"sft.yaml": factory}, start))
    assert (run.workload.framework, run.workload.global_batch) == ("DeepSpeed", 1 * 4 * 16)


def test_maxtext_in_a_config_map_runs_on_the_slices_of_the_job_beside_it(read):
    script = "python3 -m MaxText.train /etc/train/run.yml per_device_batch_size=4\n"
    files = {"train.sh": script, "run.yml": "model_name: llama3.1-8b\nmax_target_length: 8192\n"}
    text = manifest(files, ["bash", "/etc/train/train.sh"])
    selector = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    }
    text = text.replace("      containers:", f"      nodeSelector: {selector}\n      containers:")
    run = read("job.yaml", text)
    assert (run.hardware.chip, run.hardware.devices) == ("v6e", 16)
    assert (run.workload.sequence_length, run.workload.global_batch) == (8192, 64)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"fsdp.yaml": "distributed_type: [", "sft.yaml": ARGUMENTS}, r"job.yaml/fsdp.yaml:1: is not YAML"),
        ({"fsdp.yaml": "- FSDP", "sft.yaml": ARGUMENTS}, r"job.yaml/fsdp.yaml: holds no mapping"),
        ({"fsdp.yaml": FSDP}, r"names the arguments in /etc/train/sft.yaml, which is not there"),
    ],
)
def test_a_mounted_file_that_cannot_be_read_is_named(read, files, said):
    with pytest.raises(ConfigError, match=said):
        read("job.yaml", manifest(files, ["bash", "-c", START]))
