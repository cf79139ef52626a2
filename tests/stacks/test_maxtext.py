import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import PlanError
from asap.plans import AXES, Mesh, Plan, Remat
from asap.plans.axes import MESH_NAMES as NAMES
from asap.plans.remat import NAMED_POLICIES, SavedTensors, saved
from asap.plans.remat import TENSORS as PLAN_TENSORS
from asap.stacks.launchers import inexpressible
from asap.stacks.maxtext.mesh import axis_key, open_axes
from asap.stacks.maxtext.rematerialisation import TENSORS, tensors_left_out
from asap.stacks.maxtext.stack import plan_of
from asap.stacks.registry import spec
from asap.stacks.writing import paste_line, to_settings
from tests.cases import cases

TABLE = spec("maxtext")


def to_overrides(plan, current=None, **beside):
    return to_settings(TABLE, plan, current or {}, **beside)


def from_overrides(settings, devices_per_slice=None, slices=1, layers=None):
    devices = devices_per_slice and devices_per_slice * slices
    return plan_of(settings, devices, slices, layers)


DEGREES = st.sampled_from([1, 1, 2, 3, 4, 8])
MAXTEXTS = tuple(dict.fromkeys(NAMED_POLICIES.values()))
TENSOR_POLICIES = st.dictionaries(st.sampled_from(PLAN_TENSORS), st.booleans(), min_size=1).map(
    lambda places: saved([t for t in places if places[t]], [t for t in places if not places[t]], inputs_on_host=False)
)
MESHES = st.builds(Mesh, **dict.fromkeys(AXES, DEGREES))
OFFLOADS = st.lists(st.sampled_from(["optimizer", "parameters"]), unique=True).map(lambda found: tuple(sorted(found)))


@st.composite
def plans(draw) -> Plan:
    remat = draw(st.sampled_from(MAXTEXTS) | TENSOR_POLICIES)
    ici, dcn = draw(MESHES), draw(MESHES)
    piped = ici.stage * dcn.stage > 1
    moves_activations = remat is Remat.OFFLOAD or (remat is not Remat.NONE and draw(st.booleans()))
    if moves_activations and isinstance(remat, SavedTensors):
        remat = saved(remat.device, remat.host, inputs_on_host=True)
    return Plan(
        ici=ici, dcn=dcn, microbatches=draw(st.integers(1, 64)),
        pipeline_repeats=draw(st.integers(1, 4)) if piped else 1, remat=remat,
        offload=draw(OFFLOADS) + (("activations",) if moves_activations else ()),
    )  # fmt: skip


CURRENT = st.fixed_dictionaries(
    {"run_name": st.just("x")},
    optional={
        **{
            axis_key(n, name): st.sampled_from([-1, 1, 2, 4])
            for n in ("ici", "dcn")
            for g in NAMES.values()
            for name in g
        },
        "remat_policy": st.sampled_from([*NAMED_POLICIES, "custom"]),
        "key_proj": st.sampled_from(["remat", "device", "offload"]),
        "mlpwi_1": st.sampled_from(["remat", "device", "offload"]),
        "decoder_layer_input": st.sampled_from(["device", "offload"]),
        "query_proj": st.sampled_from(["remat", "device", "offload"]),
        "optimizer_memory_host_offload": st.booleans(),
        "gradient_accumulation_steps": st.integers(1, 8),
        "num_pipeline_microbatches": st.integers(1, 8),
    },
)


@given(plan=plans())
def test_a_plan_comes_back_from_its_overrides(plan):
    assert from_overrides(to_overrides(plan), plan.ici.devices, plan.dcn.devices) == plan


MAXTEXT_DEFAULTS = {"remat_policy": "full", "gradient_accumulation_steps": 1}


@given(plan=plans(), current=CURRENT)
def test_overrides_win_over_whatever_the_configuration_says(plan, current):
    combined = MAXTEXT_DEFAULTS | current | to_overrides(plan, current)
    assert from_overrides(combined, plan.ici.devices, plan.dcn.devices) == plan


@given(plan=plans(), current=CURRENT)
def test_no_override_can_be_left_out(plan, current):
    settings, overrides = MAXTEXT_DEFAULTS | current, to_overrides(plan, current)
    for key, value in overrides.items():
        assert str(settings.get(key)) != value
        if key not in TENSORS:
            assert read_or_none(settings | {k: v for k, v in overrides.items() if k != key}, plan) != plan


def read_or_none(settings, plan):
    try:
        return from_overrides(settings, plan.ici.devices, plan.dcn.devices)
    except PlanError:
        return None


@given(plan=plans())
def test_every_degree_is_said(plan):
    overrides = to_overrides(plan)
    assert open_axes(overrides, "ici") == ()
    networks = ("ici", "dcn") if plan.dcn.devices > 1 else ("ici",)
    for network in networks:
        for names in NAMES.values():
            assert axis_key(network, names[0]) in overrides


def test_a_single_slice_is_left_to_maxtext_unless_the_settings_say_otherwise():
    plan = Plan.parse("data=8")
    assert not any(key.startswith("dcn_") for key in to_overrides(plan))
    assert to_overrides(plan, {"dcn_data_parallelism": 2})["dcn_data_parallelism"] == "1"


@given(devices=st.integers(1, 4096), rest=st.integers(1, 64), batch=st.integers(1, 100_000))
def test_the_batch_of_a_device_gives_back_the_global_batch(devices, rest, batch):
    plan = Plan(ici=Mesh(data=devices), dcn=Mesh(replica=rest), microbatches=1)
    fraction = float(to_overrides(plan, global_batch=batch)["per_device_batch_size"])
    assert int(devices * rest * fraction) == batch


def test_the_line_is_ready_to_paste():
    plan = Plan.parse("data=16 seq=4 model=8 dcn.replica=2 microbatches=2 remat=full")
    assert paste_line(to_overrides(plan, global_batch=512)) == (
        "ici_data_parallelism=1 ici_fsdp_parallelism=16 ici_context_parallelism=4 ici_tensor_parallelism=8 "
        "ici_expert_parallelism=1 ici_pipeline_parallelism=1 "
        "dcn_data_parallelism=2 dcn_fsdp_parallelism=1 dcn_context_parallelism=1 dcn_tensor_parallelism=1 "
        "dcn_expert_parallelism=1 dcn_pipeline_parallelism=1 "
        "gradient_accumulation_steps=2 per_device_batch_size=0.25 remat_policy=full"
    )


@cases("plan,topology,current,split")
def test_a_mesh_that_jax_lays_only_with_split_axes_is_allowed_to(plan, topology, current, split):
    line = to_overrides(Plan.parse(plan), current, topology=tuple(topology))
    assert ("allow_split_physical_axes" in line) is split
    assert "allow_split_physical_axes" not in to_overrides(Plan.parse(plan), current)


def test_what_megatron_calls_selective_is_no_policy_of_maxtext():
    with pytest.raises(PlanError, match="no recomputation like remat=selective"):
        to_overrides(Plan.parse("data=4 remat=selective"))


def test_a_pipeline_says_how_its_layers_are_grouped():
    overrides = to_overrides(Plan.parse("stage=4 microbatches=8 pipeline_repeats=2"), layers=32)
    assert (overrides["num_layers_per_pipeline_stage"], overrides["num_pipeline_microbatches"]) == ("4", "8")
    with pytest.raises(PlanError, match="30 layers"):
        to_overrides(Plan.parse("stage=4 pipeline_repeats=2"), layers=30)


def test_axes_of_all_releases_are_read():
    plan = from_overrides(
        {
            "ici_fsdp_parallelism": 2, "ici_fsdp_transpose_parallelism": 2, "ici_context_parallelism": 2,
            "ici_sequence_parallelism": 2, "ici_context_usp_ulysses_parallelism": 2, "ici_tensor_parallelism": 2,
            "ici_tensor_transpose_parallelism": 2, "ici_tensor_sequence_parallelism": 2, "ici_expert_parallelism": 2,
            "ici_pipeline_parallelism": 2, "num_pipeline_repeats": 1,
        },
        devices_per_slice=1024,
    )  # fmt: skip
    assert (plan.ici, plan.microbatches) == (Mesh(data=4, seq=8, model=8, expert=2, stage=2), 2)


def test_layers_give_the_repeats_of_a_pipeline():
    settings = {"ici_pipeline_parallelism": 4, "ici_fsdp_parallelism": 1, "num_layers_per_pipeline_stage": 2}
    assert from_overrides(settings, 4, layers=32).pipeline_repeats == 4
    delayed = from_overrides(settings | {"pipeline_delay_activation_forwarding": True}, 4, layers=32)
    assert delayed.microbatches == 8


@cases("settings, said")
def test_settings_that_make_no_plan_are_refused(settings, said):
    with pytest.raises(PlanError, match=said):
        from_overrides(settings, devices_per_slice=256)


@cases("tensors, remat, offload")
def test_custom_rematerialisation_is_read_tensor_by_tensor(tensors, remat, offload):
    plan = from_overrides({"ici_fsdp_parallelism": 4, "remat_policy": "custom", **tensors}, 4)
    assert (plan.remat and plan.remat.value, list(plan.offload)) == (remat, offload)
    assert to_overrides(plan, {"remat_policy": "custom", **tensors}).keys() <= {"ici_fsdp_parallelism"}


@pytest.mark.parametrize(
    ("settings", "remat"),
    [({}, Remat.FULL), ({"scan_layers": True}, Remat.FULL), ({"scan_layers": "false"}, Remat.NONE)],
)
def test_no_policy_recomputes_everything_where_layers_are_scanned(settings, remat):
    settings = {"ici_fsdp_parallelism": 4, "remat_policy": "none", **settings}
    assert from_overrides(settings, 4).remat is remat
    settings |= {"remat_policy": "full"}
    keeps_all = Plan.parse("data=4 remat=none")
    reason = inexpressible(keeps_all, "maxtext", settings)
    if remat is Remat.FULL:
        assert reason.startswith("MaxText recomputes scanned layers under every policy")
    else:
        assert reason is None
        assert to_overrides(keeps_all, settings)["remat_policy"] == "none"


@pytest.mark.parametrize("current", [{"model_name": "gpt3-175b"}, {"mlp_activations": ["gelu"]}])
def test_a_model_without_a_gate_keeps_the_one_product_that_it_has(current):
    plan = Plan.parse("data=8 microbatches=1 remat=qkv+context+gate+up")
    overrides = to_overrides(plan, current)
    assert (overrides["mlpwi"], {"mlpwi_0", "mlpwi_1"} & overrides.keys()) == ("device", set())
    assert from_overrides(MAXTEXT_DEFAULTS | current | overrides, 8) == plan


@cases("kept, named")
def test_a_tensor_that_is_kept_and_not_modelled_is_named(kept, named):
    assert ", ".join(tensors_left_out({"remat_policy": "custom", **kept})) == (named or "")


def test_what_maxtext_cannot_express_is_refused():
    with pytest.raises(PlanError, match="does not offload activations with remat=none"):
        to_overrides(Plan(remat=Remat.NONE, offload=("activations",)))
    with pytest.raises(PlanError, match="7 sequences"):
        to_overrides(Plan(microbatches=2), global_batch=7)


@pytest.mark.parametrize("strategy", ["ring", "ulysses"])
def test_a_ring_of_one_device_is_none(strategy):
    current = {"ici_context_parallelism": 4, "ici_fsdp_parallelism": 2, "context_parallel_strategy": strategy}
    assert to_overrides(Plan.parse("data=8"), current)["context_parallel_strategy"] == "all_gather"
    assert "context_parallel_strategy" not in to_overrides(Plan.parse("data=4 seq=2"), current)


@cases("beside, ring")
def test_packed_sequences_are_attended_to_across_gpus_on_a_ring(beside, ring):
    settings = {"ici_fsdp_parallelism": 8, "attention": "cudnn_flash_te"} | beside
    said = to_overrides(Plan.parse("data=4 seq=2"), settings)
    assert (said.get("context_parallel_strategy") == "ring") == ring
    assert "context_parallel_strategy" not in to_overrides(
        Plan.parse("data=4 replica=2"), {"attention": "cudnn_flash_te"}
    )


def test_fp8_with_scales_of_earlier_steps_accumulates_no_gradients():
    current = {"ici_fsdp_parallelism": 8, "quantization": "fp8"}
    with pytest.raises(PlanError, match="accumulates no gradients with quantization=fp8"):
        to_overrides(Plan.parse("data=8 microbatches=2"), current, global_batch=64)
    assert to_overrides(Plan.parse("data=8 microbatches=2"), current | {"quantization": "int8"}, global_batch=64)


def test_what_needs_an_axis_of_experts_goes_with_it():
    current = {"ici_expert_parallelism": 8, "use_ring_of_experts": True, "ragged_buffer_factor": -1}
    assert to_overrides(Plan.parse("data=8"), current)["use_ring_of_experts"] == "False"
    assert "ragged_buffer_factor" not in to_overrides(Plan.parse("data=8"), current)
    assert "use_ring_of_experts" not in to_overrides(Plan.parse("data=2 expert=4"), current)
