"""Manifests of training jobs on GPUs: the command of a container goes to the reader of its stack."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import MEGATRON, TITAN, read

__all__ = ["read"]

CONTAINER = """
          containers:
            - name: pytorch
              resources: {limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 32}}
              env: [{name: TENSOR, value: "4"}, {name: POD, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
              command: ["/usr/local/bin/torchrun", "--nproc_per_node=8", "--nnodes=4"]
              args:
                - /workspace/Megatron-LM/pretrain_gpt.py
                - --tensor-model-parallel-size=$(TENSOR)
                - --pipeline-model-parallel-size=2
                - --num-layers=32
                - --hidden-size=4096
                - --num-attention-heads=32
                - --seq-length=4096
                - --max-position-embeddings=4096
                - --micro-batch-size=1
                - --global-batch-size=64
                - --bf16
"""
MEGATRON_JOB = f"""apiVersion: v1
kind: Service
metadata: {{name: etcd}}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          nodeSelector: {{node.kubernetes.io/instance-type: p5.48xlarge}}{CONTAINER}
    Worker:
      replicas: 3
      template:
        spec:{CONTAINER}
"""
TRAIN_JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    numProcPerNode: 8
    resourcesPerNode: {limits: {nvidia.com/gpu: 8}}
    command: [bash, -c]
    args:
      - |
        cd /workspace
        accelerate launch --num_processes $((2 * 8)) --num_machines 2 --use_fsdp --fsdp_version 2 \\
          --mixed_precision bf16 sft.py --model_name_or_path meta-llama/Llama-3.1-8B \\
          --per_device_train_batch_size 2 --gradient_accumulation_steps 2 --gradient_checkpointing true
"""
MPI_JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
spec:
  slotsPerWorker: 8
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - name: launcher
              command: [mpirun, -np, "16", python3, pretrain_gpt.py, --num-layers, "32", --hidden-size, "4096",
                --num-attention-heads, "32", --seq-length, "2048", --max-position-embeddings, "2048",
                --micro-batch-size, "2", --global-batch-size, "64", --tensor-model-parallel-size, "2", --bf16]
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: worker, resources: {limits: {nvidia.com/gpu: 8}}}]}}
"""
JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
spec:
  replicatedJobs:
    - name: workers
      replicas: 1
      template:
        spec:
          parallelism: 4
          completions: 4
          template:
            spec:
              nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h200-141gb}
              containers:
                - name: titan
                  env: [{name: CONFIG_FILE, value: ./train_configs/llama3_8b.toml}]
                  command: [/bin/bash, -c, "torchrun --nproc_per_node=8 --nnodes=4 -m torchtitan.train
                    --job.config_file $CONFIG_FILE --training.local_batch_size 4"]
                  resources: {limits: {nvidia.com/gpu: 8}}
"""


def test_a_pytorch_job_of_megatron_counts_the_gpus_of_all_pods(read):
    run = read("job.yaml", MEGATRON_JOB)
    assert str(run.plan) == "replica=4 model=4 stage=2 microbatches=16 remat=none"
    assert (run.hardware.devices, run.hardware.chip, run.workload.global_batch) == (32, "h100", 64)
    assert run.hardware.name == "p5.48xlarge-32"
    assert run.provenance["workload.sequence_length"] == "job.yaml:18: seq_length"
    changed = read("job.yaml", MEGATRON_JOB, "tensor_model_parallel_size=8")
    assert changed.plan.degree("model") == 8
    assert read("job.yaml", MEGATRON_JOB, hardware="h200-64").plan.devices == 64


def test_a_train_job_of_accelerate_whose_shell_has_the_command(read):
    run = read("job.yaml", TRAIN_JOB)
    assert (str(run.plan), run.hardware.devices) == ("data=16 microbatches=2 remat=full", 16)
    assert (run.workload.framework, run.workload.global_batch) == ("Accelerate FSDP", 64)


def test_an_mpi_job_has_the_command_and_the_gpus_in_two_kinds_of_pods(read):
    run = read("job.yaml", MPI_JOB)
    assert (str(run.plan), run.hardware.devices) == ("replica=8 model=2 microbatches=4 remat=none", 16)


def test_a_job_set_of_torchtitan_with_the_file_that_a_variable_names(read, tmp_path):
    (tmp_path / "llama3_8b.toml").write_text(TITAN)
    run = read("job.yaml", JOB_SET)
    assert (run.hardware.devices, run.hardware.chip) == (32, "h200")
    assert run.plan.degree("model") == 4
    assert run.workload.global_batch == 4 * 8
    script = "CONFIG_FILE=./llama3_8b.toml NGPU=8 ./run_train.sh --training.local_batch_size=1\n"
    assert read("train.sh", script, hardware="h100-8").workload.global_batch == 2
    unsaid = script.replace("=1\n", "=$BATCH\n")
    with pytest.raises(ConfigError, match=r"sets training\.local_batch_size by a variable whose value is not said"):
        read("train.sh", unsaid, hardware="h100-8")
    assert read("train.sh", unsaid, "training.local_batch_size=1", hardware="h100-8").workload.global_batch == 2


@pytest.mark.parametrize("count", ["-3", "999999999"])
def test_pods_that_no_cluster_has_are_refused(read, count):
    with pytest.raises(ConfigError, match=r"job.yaml: asks for .* GPUs"):
        read("job.yaml", MEGATRON_JOB.replace("replicas: 3", f"replicas: {count}"))


def test_counts_that_a_template_leaves_open_stay_unknown(read):
    run = read("job.yaml-template", MEGATRON_JOB.replace("replicas: 3", "replicas: ${NODES}"))
    assert run.hardware.devices == 32  # what torchrun is told
    said = MEGATRON_JOB.replace("--nnodes=4", "--nnodes=${NODES}").replace("replicas: 3", "replicas: ${NODES}")
    unknown = read("job.yaml-template", said)
    assert (unknown.plan, unknown.hardware.devices) == (None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TRAIN_JOB.replace("accelerate launch", "my-launcher"), "and runs cd /workspace: no training command"),
        (TRAIN_JOB.replace("sft.py", "grpo.py"), "another method than the prediction of tokens"),
        (JOB_SET, "starts torchtitan with ./train_configs/llama3_8b.toml, which is not there"),
        ("apiVersion: v1\nkind: Pod\nspec: {{ .Values.spec }}", "is a template of a Helm chart"),
    ],
)  # fmt: skip
def test_what_is_not_read_says_so(read, text, said):
    with pytest.raises(ConfigError, match=said):
        read("job.yaml", text)


def test_a_script_of_megatron_is_read_as_before(read):
    assert read("train.sh", MEGATRON).plan is not None
