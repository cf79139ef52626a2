"""torchtitan's configurations of 2024 and early 2025."""

import pytest

from asap.core.errors import ConfigError, PlanError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import TITAN, read

__all__ = ["read"]

OF_2024 = """
[model]
name = "llama3"
flavor = "8B"
[training]
batch_size = 2
seq_len = 4096
data_parallel_shard_degree = -1
data_parallel_replicate_degree = 2
tensor_parallel_degree = 4
compile = false
[experimental]
pipeline_parallel_degree = 1
context_parallel_degree = 1
[float8]
enable_float8_linear = true
[activation_checkpoint]
mode = "full"
"""
OF_SPRING = TITAN.replace("local_batch_size", "batch_size")


def line(run, plan: str, global_batch: int | None = None) -> str:
    batch = run.workload.global_batch if global_batch is None else global_batch
    return launch_lines(Plan.parse(plan), "torchtitan", run.hyperparameters, global_batch=batch, layers=32)


def test_degrees_and_batch_of_the_training_section(read):
    run = read("train.toml", OF_2024, hardware="h100-32")
    assert str(run.plan) == "replica=2 data=4 model=4 microbatches=1 remat=full"
    assert (run.workload.global_batch, run.workload.precision) == (16, "fp8")
    first = OF_2024.replace("data_parallel_shard_degree", "data_parallel_degree").replace(
        "replicate_degree = 2", "x = 2"
    )
    assert str(read("train.toml", first, hardware="h100-32").plan) == "data=8 model=4 microbatches=1 remat=full"
    spring = read("train.toml", OF_SPRING, hardware="h100-32")
    assert spring.workload.global_batch == 2 * 8
    piped = OF_2024.replace("pipeline_parallel_degree = 1", "pipeline_parallel_degree = 2")
    run = read("train.toml", piped.replace("batch_size = 2", "batch_size = 8"), hardware="h100-32")
    assert (run.plan.degree("stage"), run.plan.microbatches) == (2, 2)


def test_a_plan_is_said_under_the_names_of_the_configuration(read):
    run = read("train.toml", OF_2024, hardware="h100-32")
    changed = line(run, "replica=1 data=16 model=2 microbatches=1 remat=none")
    assert changed.splitlines() == [
        "[training]",
        "data_parallel_replicate_degree = 1",
        "tensor_parallel_degree = 2",
        "batch_size = 1",
        "[activation_checkpoint]",
        'mode = "none"',
    ]
    staged = line(run, "replica=2 data=2 model=4 stage=2 microbatches=4")
    assert "[experimental]\npipeline_parallel_degree = 2\npipeline_parallel_microbatches = 4" in staged
    spring = read("train.toml", OF_SPRING, hardware="h100-32")
    same = line(spring, "replica=2 data=8 model=2 microbatches=1")
    assert same == "[parallelism]\ntensor_parallel_degree = 2\n[training]\nbatch_size = 1"


def test_what_that_version_lacks_is_not_proposed(read):
    run = read("train.toml", OF_2024, hardware="h100-32")
    with pytest.raises(
        PlanError, match=r"torchtitan that has experimental.context_parallel_degree has no training.global"
    ):
        line(run, "replica=2 data=4 model=4 microbatches=2")
    with pytest.raises(PlanError, match=r"has no training.enable_cpu_offload"):
        line(run, "replica=2 data=4 model=4 microbatches=1 offload=optimizer+parameters")
    with pytest.raises(PlanError, match=r"has no parallelism.expert_parallel_degree"):
        line(run, "replica=2 data=2 model=4 expert=2 microbatches=1")
    first = OF_2024.replace("data_parallel_shard_degree", "data_parallel_degree").replace(
        "replicate_degree = 2", "x = 2"
    )
    with pytest.raises(PlanError, match=r"has no parallelism.data_parallel_replicate_degree"):
        line(read("train.toml", first, hardware="h100-32"), "replica=2 data=4 model=4 microbatches=1")
    with pytest.raises(ConfigError, match=r"training.data_parallel_type other than fsdp is not read"):
        read("train.toml", OF_2024.replace("compile", 'data_parallel_type = "ddp"\ncompile'), hardware="h100-32")
    with pytest.raises(ConfigError, match=r"training.local_batch_size must be a positive whole number, not 'two'"):
        read("train.toml", OF_2024.replace("batch_size = 2", 'batch_size = "two"'), hardware="h100-32")


def test_settings_that_only_the_devices_would_use_are_not_called_misspelt(read):
    assert not any("did you mean" in note for note in read("train.toml", TITAN).notes)
    misspelt = read("train.toml", TITAN.replace("tensor_parallel_degree", "tensor_paralel_degree"))
    assert any("did you mean parallelism.tensor_parallel_degree" in note for note in misspelt.notes)


def test_models_of_that_time(read):
    llama2 = OF_2024.replace('"llama3"', '"llama2"').replace('"8B"', '"13B"')
    assert read("train.toml", llama2).model.layers == 40


def test_a_program_that_takes_the_file_by_its_option(read, tmp_path):
    (tmp_path / "llama.toml").write_text(OF_2024)
    start = 'torchrun --nproc_per_node=8 --nnodes 4 train.py --job.config_file "./configs/llama.toml"'
    run = read("run.sh", f"{start} --experimental.context_parallel_degree 2\n")
    assert str(run.plan) == "replica=2 data=2 seq=2 model=4 microbatches=1 remat=full"


def test_a_variable_that_decides_no_step_is_no_obstacle(read, tmp_path):
    (tmp_path / "llama.toml").write_text(OF_2024)
    start = "SEED=$((RANDOM % 9))\ntorchrun --nproc_per_node=8 train.py --job.config_file llama.toml"
    run = read("run.sh", f"{start} --training.shuffle_seed $SEED --job.dump_folder $OUT\n")
    assert run.hardware.devices == 8
    with pytest.raises(ConfigError, match=r"sets training.seq_len by a variable"):
        read("run.sh", f"{start} --training.shuffle_seed $SEED --training.seq_len $LENGTH\n")
