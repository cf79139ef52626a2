import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.calibration.dataset.rows import UnusableRowError, read_models, read_rows
from asap.calibration.dataset.run_text import family_of, network_of, node_of, remat_of
from asap.calibration.dataset.runs import IMPOSSIBLE, PublishedRun, read_run, read_runs
from asap.core.errors import ConfigError
from asap.plans import Remat
from tests.cases import cases

MODEL = {"model": "m", "n_layers": 32, "d_model": 4096, "d_ff": 14336, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128,
         "vocab": 32000, "activation": "swiglu"}  # fmt: skip
ROW = {"id": "r", "source_key": "s", "model": "m", "hardware": "H100", "n_chips": 64, "status": "ok", "trust": "A",
       "seq_len": 4096, "global_batch_seqs": 512, "tp": 4, "pp": 2, "micro_batch_seqs": 2, "step_time_s": 3.0,
       "framework": "Megatron-LM", "remat": "full", "precision": "bf16"}  # fmt: skip


def run(**changes) -> PublishedRun:
    row = {key: value for key, value in (ROW | changes).items() if value is not None}
    return read_run(row, {"m": MODEL})


def test_degrees_of_a_gpu_row():
    plan = run().plan
    assert (str(plan.ici), plan.microbatches, plan.remat) == ("replica=8 model=4 stage=2", 32, Remat.FULL)


@cases("changes, mesh")
def test_fsdp_shards_parameters_and_experts_are_taken_from_the_data_parallel_ranks(changes, mesh):
    assert str(run(tp=1, pp=1, **changes).plan.ici) == mesh


@cases("changes, mesh, over")
def test_experts_lie_over_other_axes_as_megatron_lays_them(changes, mesh, over):
    found = run(**changes)
    assert (str(found.plan.ici), list(found.workload.experts_over)) == (mesh, over)


@cases("says, compiled")
def test_whether_pytorch_compiled_the_model(says, compiled):
    assert run(framework="torchtitan", **says).workload.compiled is compiled


def test_nvlink_of_a_rack_does_not_end_at_a_node():
    def domain(chip):
        return run(hardware=chip, hardware_detail="4 GPUs per node").hardware.chip.scaleup.domain

    assert (domain("H100"), domain("GB200")) == (4, 72)


def test_a_mesh_of_jax_axes():
    changes = {"hardware": "TPU v5e", "n_chips": 512, "tp": None, "pp": None, "micro_batch_seqs": None}
    found = run(**changes, derived_ici_mesh={"fsdp": 16, "tensor": 16}, derived_dcn_mesh={"data": 2})
    assert str(found.plan) == "data=16 model=16 dcn.replica=2 remat=full"
    assert found.hardware.slices == 2


def test_devices_of_a_chip_with_two():
    changes = {"hardware": "TPU7x (Ironwood)", "n_chips": 128, "topology": "4x4x8", "micro_batch_seqs": None}
    assert run(**changes, tp=None, pp=None, derived_ici_mesh={"fsdp": 256}).plan.devices == 256


@cases("changes, seconds")
def test_step_time_from_what_there_is(changes, seconds):
    assert run(step_time_s=None, **changes).step_time == pytest.approx(seconds)


@cases("changes, reason")
def test_a_row_that_cannot_be_used_says_why(changes, reason):
    with pytest.raises(UnusableRowError, match=reason):
        run(**changes)


def test_a_run_that_died_needs_no_time():
    found = run(status="oom", step_time_s=None)
    assert (found.out_of_memory, found.step_time) == (True, None)


MESHES = st.dictionaries(st.sampled_from(["fsdp", "tensor", "x"]), st.integers(-1, 64) | st.text(max_size=3))
NUMBERS = st.booleans() | st.integers(-5, 10**9) | st.floats() | st.lists(st.integers(), max_size=2)
ANYTHING = st.none() | NUMBERS | st.text(max_size=8) | MESHES
KEYS = [*ROW, "ep", "cp", "vpp", "raw_config", "derived_ici_mesh", "topology", "zero_stage", "precision", "n_layers"]


@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING))
def test_whatever_a_row_holds_it_is_a_run_or_a_reason(changes):
    (found,) = read_runs([ROW | changes], {"m": MODEL})
    assert isinstance(found, PublishedRun | str)
    assert found


@cases("text, policy, offloaded")
def test_policies_in_free_text(text, policy, offloaded):
    assert remat_of({"remat": text}) == (policy, offloaded)


@cases("text, gigabytes")
def test_networks_in_free_text(text, gigabytes):
    assert network_of({"interconnect": text}) == (gigabytes and gigabytes * 1e9)


@cases("text, devices")
def test_nodes_in_free_text(text, devices):
    assert node_of({"hardware_detail": text}) == devices


@pytest.mark.parametrize("seconds", [1e-3, 1e4])
def test_a_row_that_no_hardware_explains_is_left_out(seconds):
    assert list(read_runs([ROW | {"step_time_s": seconds}], {"m": MODEL})) == [IMPOSSIBLE]


def test_families():
    assert family_of("LLAMA3_70B") == "llama"
    assert family_of("abacus") == "other"


def test_files_may_be_compressed(tmp_path):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(ROW).encode()))
    assert read_rows(path) == [ROW]


@pytest.mark.parametrize("line", ["{", "[1]", '"text"', "nan nan"])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n\n{line}\n")
    with pytest.raises(ConfigError, match=r"rows\.jsonl:3"):
        read_rows(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="absent"):
        read_rows(tmp_path / "absent.jsonl")


def test_models_are_found_by_alias(tmp_path):
    path = tmp_path / "models.jsonl"
    path.write_text(json.dumps(MODEL | {"alias": ["nick"]}))
    assert set(read_models(path)) == {"m", "nick"}
