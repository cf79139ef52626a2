"""DeepSpeed configurations that a YAML names, and that its stack brings along."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

FACTORY = """
model_name_or_path: Qwen/Qwen3-8B
stage: sft
finetuning_type: full
deepspeed: {name}
cutoff_len: 2048
per_device_train_batch_size: 2
bf16: true
"""
AXOLOTL = """
base_model: Qwen/Qwen3-8B
deepspeed: {name}
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 2
bf16: true
sample_packing: true
"""


@pytest.mark.parametrize(
    ("text", "name", "stage", "offload"),
    [
        (FACTORY, "examples/deepspeed/ds_z3_config.json", 3, ()),
        (FACTORY, "examples/deepspeed/ds_z2_offload_config.json", 2, ("optimizer",)),
        (FACTORY, "/src/LLaMA-Factory/examples/deepspeed/ds_z3_offload_config.json", 3, ("optimizer", "parameters")),
        (AXOLOTL, "deepspeed_configs/zero3_bf16.json", 3, ()),
        (AXOLOTL, "deepspeed_configs/zero2.json", 2, ("optimizer",)),
        (AXOLOTL, "deepspeed_configs/zero3_bf16_cpuoffload_params.json", 3, ("parameters",)),
    ],
)
def test_a_configuration_that_the_stack_brings_along(read, text, name, stage, offload):
    run = read("run.yaml", text.format(name=name), hardware="h100-8")
    assert (run.workload.zero_stage, run.workload.precision, tuple(run.plan.offload)) == (stage, "bf16", offload)
    assert f"{name} is not there, and taken as the one that the stack brings along" in run.notes


def test_the_file_itself_is_what_counts(read, tmp_path):
    own = tmp_path / "examples" / "deepspeed" / "ds_z3_config.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"zero_optimization": {"stage": 1}, "bf16": {"enabled": "auto"}}')
    run = read("run.yaml", FACTORY.format(name="examples/deepspeed/ds_z3_config.json"), hardware="h100-8")
    assert run.workload.zero_stage == 1
    assert not any("brings along" in note for note in run.notes)


@pytest.mark.parametrize("name", ["ds_z3_config.json", "configs/zero2.json", "deepspeed_configs/own.json"])
def test_a_file_of_ones_own_is_asked(read, name):
    with pytest.raises(ConfigError, match="is not there"):
        read("run.yaml", AXOLOTL.format(name=name), hardware="h100-8")
