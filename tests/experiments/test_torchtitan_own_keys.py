"""What forks of torchtitan add: named where it is not read, asked for where it decides the model."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import TITAN, read

__all__ = ["read"]


@pytest.mark.parametrize("own", ["num_experts = 16", "moe_layers = [2, 4]", "kv_heads = 2", "extra_vocab_tokens = 9"])
def test_a_forks_own_shapes_leave_the_model_unknown_and_the_rest_read(read, own):
    key = own.partition(" ")[0]
    run = read("train.toml", TITAN.replace('flavor = "8B"', f'flavor = "8B"\n{own}'), hardware="h100-64")
    assert run.model.layers is None
    assert any(f"torchtitan has no model.{key}, which by its name changes llama3 8B" in note for note in run.notes)
    assert (run.plan.degree("model"), run.workload.sequence_length) == (4, 8192)
    said = read("train.toml", TITAN.replace('"8B"', f'"8B"\n{own}'), "model.layers=4", hardware="h100-64")
    assert said.model.layers == 4


def test_other_settings_of_a_fork_are_named_alone(read):
    said = TITAN.replace('flavor = "8B"', 'flavor = "8B"\nwatermark = "x"')
    said = said.replace("tensor_parallel_degree = 4", "tensor_parallel_degree = 4\nring_exchange = true")
    run = read("train.toml", said, hardware="h100-64")
    assert run.model.layers == 32
    assert "not read, as no torchtitan has it: model.watermark, parallelism.ring_exchange" in run.notes
    plain = read("train.toml", TITAN, hardware="h100-64")
    assert not any("no torchtitan" in note for note in plain.notes)


def test_replicas_that_go_their_own_way_are_named(read):
    said = '[fault_tolerance]\nenable = true\nsemi_sync_method = "diloco"\nsync_steps = 40\n'
    assert any("once in 40 steps" in note for note in read("train.toml", TITAN + said, hardware="h100-64").notes)
    off = read("train.toml", TITAN + said.replace("true", "false"), hardware="h100-64")
    assert not any("once in" in note for note in off.notes)


def test_a_model_of_the_hub_by_its_name_alone(read):
    said = TITAN.replace('name = "llama3"\nflavor = "8B"', 'name = "meta-llama/Llama-3.1-8B"')
    assert read("train.toml", said, hardware="h100-64").model.layers == 32


def test_a_configuration_that_is_no_toml_says_so(read, tmp_path):
    (tmp_path / "muon.py").write_text("model = {'flavor': '8B'}\n")
    with pytest.raises(ConfigError, match=r"muon\.py, a fork's own kind of configuration"):
        read("run.sh", "CONFIG_FILE=muon.py ./run_train.sh\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"float8"', '"float8", "lora"'),
        ('flavor = "8B"', 'flavor = "8B-lora"'),
        ("[training]", "[lora]\nrank = 8\n[training]"),
        ("[training]", "[model.peft]\nenable = true\n[training]"),
    ],
)
def test_adapters_are_refused(read, old, new):
    with pytest.raises(ConfigError, match="training a part of the parameters is not modelled"):
        read("run.toml", TITAN.replace(old, new), hardware="h100-16")


def test_adapters_that_are_off_are_none(read):
    run = read("run.toml", TITAN.replace("[training]", "[model.lora]\nenable = false\n[training]"), hardware="h100-16")
    assert run.plan is not None
