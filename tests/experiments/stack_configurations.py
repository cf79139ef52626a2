"""Configurations of other stacks, and how a test reads one."""

import pytest

from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.models.parameters import count_parameters
from tests.cases import kept

KEPT = kept(__file__)

MIXTURE = KEPT["MIXTURE"]
"""A command of Megatron-LM that trains a mixture of experts, without CUDA graphs."""
MEGATRON = KEPT["MEGATRON"]

NEMO = KEPT["NEMO"]

BRIDGE = KEPT["BRIDGE"]

TITAN = KEPT["TITAN"]

DEEPSPEED = KEPT["DEEPSPEED"]
HUGGING_FACE = kept(__file__)["HUGGING_FACE"]


@pytest.fixture
def read(tmp_path):
    def call(name: str, text: str, *overrides: str, hardware: str | None = None) -> Experiment:
        path = tmp_path / name
        path.write_text(text)
        empty = Experiment(id="x")
        if hardware:
            empty = empty.model_copy(update={"hardware": refer_to_hardware(hardware)[0]})
        return read_configuration(path, overrides, empty)

    return call


def size(experiment: Experiment) -> float:
    assert experiment.model is not None
    return count_parameters(experiment.model).total
