"""Plans under other meshes and rules than MaxText's own."""

import pytest

from asap.core.errors import BadInputError, ConfigError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.plans import Mesh, Plan
from asap.stacks.maxtext.overrides import to_overrides
from asap.stacks.maxtext.sharding_rules import NAMES, axis_roles

USUAL = [
    ["activation_batch", ["data", "fsdp", "fsdp_transpose", "expert"]],
    ["activation_length", ["context"]],
    ["activation_heads", ["tensor"]],
    ["activation_exp", ["expert"]],
    ["embed", ["fsdp", "fsdp_transpose", "context", "expert"]],
    ["mlp", ["fsdp_transpose", "tensor"]],
    ["exp", "expert"],
    ["layers", "stage"],
]
AXES = ["data", "stage", "fsdp", "fsdp_transpose", "context", "tensor", "expert"]


def read(*overrides: str, hardware: str = "v5e-64") -> Experiment:
    known, _ = refer_to_hardware(hardware)
    return read_configuration(None, overrides, Experiment(id="x", hardware=known))


def test_axes_have_their_usual_roles_under_the_usual_rules():
    roles = axis_roles({"logical_axis_rules": USUAL, "mesh_axes": AXES})
    assert roles.usual
    assert set(roles.names) == set(NAMES)
    assert roles.names["data"] == ("fsdp", "fsdp_transpose")


def test_an_axis_is_read_by_what_the_rules_let_it_do():
    rules = [["activation_batch", ["data", "fsdp", "expert"]], ["embed", ["fsdp"]], ["mlp", ["expert"]]]
    settings = {"logical_axis_rules": rules, "mesh_axes": ["data", "fsdp", "expert"]}
    roles = axis_roles(settings)
    assert roles.names["data"] == ("fsdp", "expert")
    assert not roles.usual
    overrides = to_overrides(Plan.parse("data=16"), settings | {"ici_fsdp_parallelism": 8, "ici_expert_parallelism": 4})
    assert overrides == {"ici_fsdp_parallelism": "16", "ici_expert_parallelism": "1"}


@pytest.mark.parametrize(
    ("custom", "degrees", "mesh"),
    [
        ("pure-fsdp", [], Mesh(data=64)),
        ("ep-as-dp", ["ici_expert_parallelism=4"], Mesh(data=16, expert=4)),
        ("pipeline-large-moe", ["ici_context_parallelism=4"], Mesh(data=16, seq=4)),
        ("shard-exp-on-fsdp", ["ici_expert_parallelism=4"], Mesh(data=16, expert=4)),
        ("cp-as-ep", ["ici_expert_parallelism=4"], Mesh(data=16, expert=4)),
    ],
)
def test_custom_meshes_that_a_plan_can_say_are_read(custom, degrees, mesh):
    assert read(f"custom_mesh_and_rule={custom}", *degrees).plan.ici == mesh


@pytest.mark.parametrize(("custom", "axis"), [("cp-as-ep", "context"), ("ep-as-cp", "expert")])
def test_an_axis_that_shards_sequence_and_experts_is_not_understood_and_that_is_said(custom, axis):
    experiment = read(f"custom_mesh_and_rule={custom}", f"ici_{axis}_parallelism=4")
    assert experiment.plan is None
    assert any(f"ici_{axis}_parallelism=4: it shards both" in note for note in experiment.notes)


@pytest.mark.parametrize(
    "overrides", [["ici_autoregressive_parallelism=2"], ["ici_diloco_parallelism=2", "ici_fsdp_parallelism=32"]]
)
def test_axes_without_word_are_not_understood_and_that_is_said(overrides):
    experiment = read(*overrides)
    assert experiment.plan is None
    assert any("no word for this axis" in note for note in experiment.notes)


def test_an_axis_that_the_mesh_does_not_have_is_refused():
    with pytest.raises(ConfigError, match="ici_tensor_parallelism=4, and the mesh has no such axis"):
        read("custom_mesh_and_rule=pure-fsdp", "ici_tensor_parallelism=4")


def test_rules_beside_the_configuration_are_read(tmp_path):
    (tmp_path / "custom_mesh_and_rule").mkdir()
    (tmp_path / "custom_mesh_and_rule" / "ours.yml").write_text(
        "mesh_axes: ['fsdp', 'expert']\n"
        "logical_axis_rules: [['activation_batch', ['fsdp']], ['embed', ['fsdp']], "
        "['activation_length', ['expert']]]\n"
    )
    (tmp_path / "run.yml").write_text("custom_mesh_and_rule: ours\nici_expert_parallelism: 4\n")
    hardware, _ = refer_to_hardware("v5e-64")
    plan = read_configuration(tmp_path / "run.yml", [], Experiment(id="x", hardware=hardware)).plan
    assert plan.ici == Mesh(data=16, seq=4)


def test_a_plan_that_the_custom_mesh_has_no_axis_for_resets_it():
    current = {"custom_mesh_and_rule": "pure-fsdp"}
    overrides = to_overrides(Plan.parse("data=16 model=4"), current)
    assert overrides == {"custom_mesh_and_rule": '""', "ici_tensor_parallelism": "4"}
    again = read("custom_mesh_and_rule=pure-fsdp", *(["remat_policy=minimal"]))
    assert again.plan.ici == Mesh(data=64)
    assert read(*(f"{key}={value}" for key, value in overrides.items())).plan.ici == Mesh(data=16, model=4)


def test_rings_are_kept_for_a_mesh_that_they_are_for_and_else_reset():
    current = {"custom_mesh": "hybrid_ring_64x4", "ici_fsdp_parallelism": 64, "ici_tensor_parallelism": 4}
    turned = to_overrides(Plan.parse("data=4 model=64"), current, topology=(16, 16))
    assert turned == {"ici_fsdp_parallelism": "4", "ici_tensor_parallelism": "64"}
    other = to_overrides(Plan.parse("data=256"), current, topology=(16, 16))
    assert other == {"ici_fsdp_parallelism": "256", "ici_tensor_parallelism": "1", "custom_mesh": '""'}


def test_layers_outside_of_the_pipeline_are_read():
    settings = ["model_name=deepseek3-671b", "ici_pipeline_parallelism=2", "ici_fsdp_parallelism=32"]
    piped = read(*settings, "pipeline_parallel_layers=58", "num_layers_per_pipeline_stage=29")
    assert (piped.workload.pipelined_layers, piped.plan.pipeline_repeats) == (58, 1)
    assert piped.model.layers == 61
    assert read(*settings).plan.pipeline_repeats == 29
    with pytest.raises(BadInputError, match="57 decoder layers are not a multiple of 2"):
        read(*settings, "pipeline_parallel_layers=57")


def test_settings_that_the_prediction_does_not_use_are_said():
    experiment = read("mu_dtype=bfloat16", "grad_dtype=bfloat16", "enable_diloco=true")
    assert experiment.workload.first_moment_precision == "bf16"
    assert experiment.workload.gradient_precision == "bf16"
    notes = [note for note in experiment.notes if "the prediction does not use" in note]
    assert notes == ["the prediction does not use enable_diloco=True, grad_dtype=bfloat16"]
    assert experiment.workload.first_moment_precision == "bf16"
    assert not any("does not use" in note for note in read("weight_dtype=bfloat16", "mu_dtype=bfloat16").notes)


def test_a_policy_tensor_by_tensor_says_what_it_does():
    experiment = read("remat_policy=custom", "decoder_layer_input=offload", "mla_q=offload", "key_proj=device")
    assert "remat_policy=custom: the prediction leaves out mla_q" in experiment.notes
    assert str(experiment.plan) == "data=64 microbatches=1 remat=key offload=activations"
    with pytest.raises(ConfigError, match="mlpwo cannot be 'hbm'"):
        read("remat_policy=custom", "mlpwo=hbm")
