"""Plans under other meshes and rules than MaxText's own."""

import pytest

from asap.core.errors import BadInputError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.plans import Plan
from asap.plans.axes import MESH_NAMES
from asap.stacks.maxtext.mesh import axis_roles
from asap.stacks.registry import spec
from asap.stacks.writing import to_settings
from tests.cases import kept

USUAL = kept(__file__)["USUAL"]
AXES = ["data", "stage", "fsdp", "fsdp_transpose", "context", "tensor", "expert"]


def read(*overrides: str, hardware: str = "v5e-64") -> Experiment:
    known, _ = refer_to_hardware(hardware)
    return read_configuration(None, overrides, Experiment(id="x", hardware=known))


def test_axes_have_their_usual_roles_under_the_usual_rules():
    roles = axis_roles({"logical_axis_rules": USUAL, "mesh_axes": AXES})
    assert roles.usual
    assert set(roles.names) == set(MESH_NAMES)
    assert roles.names["data"] == ("fsdp", "fsdp_transpose")


def test_an_axis_is_read_by_what_the_rules_let_it_do():
    rules = [["activation_batch", ["data", "fsdp", "expert"]], ["embed", ["fsdp"]], ["mlp", ["expert"]]]
    settings = {"logical_axis_rules": rules, "mesh_axes": ["data", "fsdp", "expert"]}
    roles = axis_roles(settings)
    assert roles.names["data"] == ("fsdp", "expert")
    assert not roles.usual
    current = settings | {"ici_fsdp_parallelism": 8, "ici_expert_parallelism": 4}
    overrides = to_settings(spec("maxtext"), Plan.parse("data=16"), current)
    assert overrides == {"ici_fsdp_parallelism": "16", "ici_expert_parallelism": "1"}


def test_layers_outside_of_the_pipeline_are_read():
    settings = ["model_name=deepseek3-671b", "ici_pipeline_parallelism=2", "ici_fsdp_parallelism=32"]
    piped = read(*settings, "pipeline_parallel_layers=58", "num_layers_per_pipeline_stage=29")
    assert (piped.workload.pipelined_layers, piped.plan.pipeline_repeats) == (58, 1)
    assert piped.model.layers == 61
    assert read(*settings).plan.pipeline_repeats == 29
    with pytest.raises(BadInputError, match="57 decoder layers are not a multiple of 2"):
        read(*settings, "pipeline_parallel_layers=57")
