"""Files of several runs: a list where a setting takes one value, and searches."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import NEMO, read

__all__ = ["read"]

TITAN = """
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = [2, 4]
seq_len = 4096
"""
MAXTEXT = "base_config: base.yml\nmodel_name: llama2-7b\nmax_target_length: 2048\nper_device_batch_size: [1, 2]\n"


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("nemo.yaml", NEMO.replace("micro_batch_size: 1", "micro_batch_size: [1, 2]"), "model.micro_batch_size"),
        ("titan.toml", TITAN, "training.local_batch_size"),
        ("run.yml", MAXTEXT, "per_device_batch_size"),
        ("mine.yaml", "model: llama3.1-8b\nworkload: {global_batch: [1, 2]}\n", "workload.global_batch"),
    ],
)
def test_a_list_of_values_is_a_sweep_and_one_of_them_is_asked_for(read, name, text, key):
    with pytest.raises(ConfigError, match=rf"{key} has several values .*, as in a sweep.*say which: add {key}="):
        read(name, text, hardware="h100-64")
    assert read(name, text, f"{key}=2", hardware="h100-64").workload.global_batch is not None


@pytest.mark.parametrize(
    "text",
    [
        "program: tune.py\nmethod: bayes\nparameters: {lr: {min: 1.0e-5, max: 1.0e-4}, tp: {values: [1, 2]}}\n",
        "model: llama2-7b\nsweep: {lr: [1.0e-5, 2.0e-5], tp: [1, 2]}\n",
    ],
)
def test_a_search_is_named_with_what_it_is_over(read, text):
    with pytest.raises(ConfigError, match=r"is a search over lr, tp: one run is read at a time"):
        read("search.yaml", text, hardware="h100-8")
