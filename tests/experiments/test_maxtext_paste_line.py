"""The line to paste, applied to the configuration that it is for."""

import shlex

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asap.core.errors import AsapError, PlanError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.plans import Mesh, Remat
from asap.plans.remat import SavedTensors
from asap.proposals.launch import launcher_line
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.stacks.maxtext.rematerialisation import PLACES
from asap.stacks.registry import OF_YAML, spec
from asap.stacks.writing import paste_line, to_settings
from asap.study.study import study_of
from tests.cases import kept

DEVICES, TOPOLOGY = 64, (8, 8)


def to_overrides(plan, current=None, **beside):
    return to_settings(spec("maxtext"), plan, current or {}, **beside)


DEGREE = st.sampled_from([1, 2, 4, 8])
CONFIGURATIONS = st.fixed_dictionaries(
    {"model_name": st.just("llama2-7b"), "run_name": st.just("a run"), "learning_rate": st.just(1e-4)},
    optional={
        "ici_fsdp_parallelism": st.sampled_from([-1, 4, 8, 16]),
        "ici_fsdp_transpose_parallelism": st.sampled_from([1, 2]), "ici_tensor_parallelism": DEGREE,
        "ici_context_parallelism": st.sampled_from([1, 2]), "ici_sequence_parallelism": st.sampled_from([1, 2]),
        "ici_data_parallelism": st.sampled_from([-1, 1, 2]), "dcn_data_parallelism": st.sampled_from([-1, 1]),
        "per_device_batch_size": st.sampled_from([0.5, 1, 2, 3.0]),
        "gradient_accumulation_steps": st.sampled_from([1, 2]),
        "remat_policy": st.sampled_from(["full", "minimal", "minimal_with_context", "custom", "qkv_proj_offloaded"]),
        "decoder_layer_input": st.sampled_from(PLACES[1:]), "query_proj": st.sampled_from(PLACES),
        "qkv_proj": st.sampled_from(PLACES), "fused_qkv": st.booleans(), "context": st.sampled_from(PLACES),
        "out_proj": st.sampled_from(PLACES), "mlpwo": st.sampled_from(PLACES), "mlpwi_0": st.sampled_from(PLACES),
        "optimizer_memory_host_offload": st.booleans(), "allow_split_physical_axes": st.booleans(),
        "num_vocab_tiling": st.sampled_from([1, 4]), "mu_dtype": st.just("bfloat16"),
    },
)  # fmt: skip


@st.composite
def meshes(draw) -> Mesh:
    left, degrees = DEVICES, {}
    for axis in ("replica", "seq", "model"):
        degrees[axis] = draw(st.sampled_from([d for d in (1, 2, 4, 8) if left % d == 0]))
        left //= degrees[axis]
    return Mesh(data=left, **degrees)


def read(path, *overrides: str) -> Experiment:
    hardware, _ = refer_to_hardware("v5e-64")
    return read_configuration(path, overrides, Experiment(id="x", hardware=hardware))


@settings(max_examples=150, deadline=None)
@given(
    configuration=CONFIGURATIONS, mesh=meshes(), microbatches=st.sampled_from([1, 2]),
    remat=st.sampled_from([None, Remat.FULL, Remat.OFFLOAD, SavedTensors(("key", "up"), ("query",))]),
)  # fmt: skip
def test_the_line_gives_the_plan_and_leaves_the_rest_as_it_is(
    tmp_path_factory, configuration, mesh, microbatches, remat
):
    path = tmp_path_factory.getbasetemp() / "run.yml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in configuration.items()))
    try:
        before = read(path)
    except AsapError:
        assume(False)
    wanted = before.plan.model_copy(update={"ici": mesh, "microbatches": microbatches})
    if remat is not None:
        wanted = wanted.model_copy(
            update={"remat": remat, "offload": ("activations",) if remat is Remat.OFFLOAD else ()}
        )
    batch = before.workload.global_batch
    assume(batch % microbatches == 0)
    try:
        overrides = to_overrides(wanted, before.hyperparameters, global_batch=batch, topology=TOPOLOGY)
    except PlanError:
        assume(False)
    after = read(path, *shlex.split(paste_line(overrides)))
    assert after.plan == wanted
    way = before.workload.context_parallel or after.workload.context_parallel
    assert after.workload == before.workload.model_copy(
        update={"context_parallel": way if wanted.degree("seq") > 1 else None}
    )
    assert after.model == before.model
    old, new = (
        {key: value for key, value in one.hyperparameters.items() if key not in (*overrides, OF_YAML)}
        for one in (before, after)
    )
    assert new == old
    for key in overrides:
        rest = [f"{other}={value}" for other, value in overrides.items() if other != key]
        assert key == "allow_split_physical_axes" or _without(path, rest) != (wanted, batch)


def _without(path, overrides):
    try:
        found = read(path, *overrides)
    except AsapError:
        return None
    return found.plan, found.workload.global_batch


def test_a_line_that_changes_nothing_is_empty(tmp_path):
    (tmp_path / "run.yml").write_text("remat_policy: custom\nquery_proj: device\nici_tensor_parallelism: 4\n")
    experiment = read(tmp_path / "run.yml")
    batch = experiment.workload.global_batch
    assert to_overrides(experiment.plan, experiment.hyperparameters, global_batch=batch) == {}


def test_a_policy_tensor_by_tensor_stays_where_the_plan_leaves_it(tmp_path):
    (tmp_path / "run.yml").write_text("remat_policy: custom\nquery_proj: device\nmlpwo: offload\n")
    experiment = read(tmp_path / "run.yml")
    plan = experiment.plan.with_ici(data=16, model=4)
    assert to_overrides(plan, experiment.hyperparameters) == {"ici_tensor_parallelism": "4"}
    full = plan.model_copy(update={"remat": Remat.FULL})
    assert to_overrides(full, experiment.hyperparameters)["remat_policy"] == "full"


def test_a_key_that_the_models_own_file_sets_is_changed_with_its_permission(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "acme.yml").write_text(
        "base_emb_dim: 4096\nbase_num_decoder_layers: 4\nici_tensor_parallelism: 4\nremat_policy: full\n"
    )
    (tmp_path / "run.yml").write_text("model_name: acme\n")
    study = study_of(read(tmp_path / "run.yml"))
    line = launcher_line(study, study.plan.with_ici(data=8, model=8))
    assert line == "ici_tensor_parallelism=8 override_model_config=true"
    assert read(tmp_path / "run.yml", *shlex.split(line)).plan.ici == Mesh(data=8, model=8)
    with pytest.raises(AsapError, match="contradicts the file of the model"):
        read(tmp_path / "run.yml", "ici_tensor_parallelism=2")
    assert launcher_line(study, study.plan) == "allow_split_physical_axes: true"


RULES = kept(__file__)["RULES"]


def test_plans_that_the_users_rules_leave_no_axis_for_are_no_candidates(tmp_path):
    (tmp_path / "run.yml").write_text(f"model_name: llama2-7b\nper_device_batch_size: 4\n{RULES}")
    found = rank_candidates(study_of(read(tmp_path / "run.yml")))
    assert found.candidates
    assert all({*candidate.plan.ici.degrees[2:]} == {1} for candidate in found.candidates)
    assert any("no axis for model=" in reason for reason in found.left_out)
    warnings = propose(found, lambda study, plan: ()).warnings
    assert any("plans are left out for reasons such as: MaxText's mesh has no axis" in warning for warning in warnings)
