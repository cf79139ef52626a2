"""Real profiles, where they are at hand: ``ASAP_TEST_PROFILES`` or ``../shared/profiles``."""

import gzip
from pathlib import Path

import pytest

from asap.core.errors import ProfileError
from asap.profiles import read_profile

DATA = Path(__file__).parents[1] / "data" / "profiles"
BOUNDS = ("compute", "hbm", "unknown")


def test_v6e_without_step_marks(shared):
    profile = read_profile(shared("openxla_xprof__tpu_inference_2"))
    assert (profile.device_type, profile.devices, profile.extent) == ("TPU v6 Lite", 4, "window")
    assert profile.kpis.duty_cycle == pytest.approx(0.865, abs=5e-4)
    assert profile.kpis.idle == pytest.approx(0.134, abs=5e-4)
    assert profile.kpis.communication == pytest.approx(0.0040, abs=5e-5)
    assert [c.kind for c in profile.kpis.collectives] == ["all-reduce"]
    assert len(profile.operations) == 17
    top = profile.operations[:3]
    assert [round(op.fraction, 3) for op in top] == [0.214, 0.213, 0.208]
    assert {op.category for op in top} == {"copy-done"}
    assert {op.bound for op in top} == {"host"}
    assert sum(op.fraction for op in profile.operations if op.host_copy) == pytest.approx(0.836, abs=5e-4)
    assert [op.memory_bandwidth for op in top] == [pytest.approx(28e9, rel=0.02)] * 3
    assert [op.roofline_efficiency for op in top] == [None] * 3
    assert all(op.roofline_efficiency is None for op in profile.operations if op.category == "copy-start")
    assert profile.roofline.peak_flop_rate == pytest.approx(918e12)
    assert profile.roofline.peak_hbm_bandwidth == pytest.approx(1525.5 * 2**30)
    assert profile.roofline.program_bound == "hbm"
    assert profile.roofline.program_efficiency == pytest.approx(0.0435, abs=5e-5)
    assert (profile.kpis.steps, profile.kpis.step_time_s) == (100, pytest.approx(0.784, abs=5e-4))
    assert profile.hbm_capacity_bytes == pytest.approx(31.25 * 2**30, rel=1e-3)
    assert profile.peak_hbm_bytes == pytest.approx(20.0 * 2**30, rel=1e-2)
    assert any("may not be training" in warning for warning in profile.warnings)


def test_mangled_v6e_is_named_as_such(shared):
    file = shared("openxla_xprof__tpu_inference_2_CORRUPT")
    with pytest.raises(ProfileError, match="was copied as text"):
        read_profile(file)


def test_v100_of_tensorflow_has_a_step_and_kernels(shared):
    profile = read_profile(shared("openxla_xprof__gpu_multi_worker"))
    assert (profile.devices, profile.extent) == (2, "step")
    assert profile.kpis.step_time_s == pytest.approx(21.31e-3, abs=1e-5)
    assert profile.kpis.duty_cycle == pytest.approx(14.9 / 21.3, abs=0.005)
    kernels = [op for op in profile.operations if not op.host_copy]
    assert len(kernels) == 15
    assert sum(op.time_s or 0 for op in kernels) == pytest.approx(14.9e-3, abs=0.1e-3)
    copies = {op.name: op.time_s for op in profile.operations if op.host_copy}
    assert copies == {"MemcpyH2D": pytest.approx(154e-6, abs=1e-6), "MemcpyD2H": pytest.approx(18e-6, abs=1e-6)}
    assert profile.operations[0].occurrences == pytest.approx(97)
    assert any("GPU kernels only" in gap.what for gap in profile.gaps)
    assert any("2 of 8 devices" in warning for warning in profile.warnings)


@pytest.mark.parametrize(("name", "operations"), [("mi300_gemm", 16), ("mi300_elementwise", 13)])
def test_mi300_times_are_of_the_gpu_that_worked(shared, name, operations):
    profile = read_profile(shared(f"AMD-AGI_TraceLens__{name}"))
    assert profile.devices == 1
    assert len(profile.operations) == operations
    window = (profile.operations[0].time_s or 0) / profile.operations[0].fraction
    assert window == pytest.approx(9.7e-3, abs=0.3e-3)
    assert sum(op.fraction for op in profile.operations) == pytest.approx(1 - (profile.kpis.idle or 0))
    assert any("1 of 8 devices" in warning for warning in profile.warnings)


def test_library_products_on_mi300_are_placed_by_their_shapes(shared):
    products = [
        op for op in read_profile(shared("AMD-AGI_TraceLens__mi300_gemm")).operations if op.name == "custom-call.1"
    ]
    assert not any(op.opaque for op in products)
    assert products[0].flops == pytest.approx(3 * 2 * 8192 * 8192 * 4096)
    assert {op.bound for op in products} == {"compute"}
    assert all(0.1 < (op.flop_utilisation or 0) < 0.8 for op in products)


def test_the_bandwidth_of_mi300_is_that_of_its_data_sheet(shared):
    profile = read_profile(shared("AMD-AGI_TraceLens__mi300_elementwise"))
    assert profile.roofline.peak_hbm_bandwidth == pytest.approx(5.3e12)
    assert profile.roofline.ridge_point == pytest.approx(1.30744e15 / 5.3e12, rel=1e-5)
    assert all((op.roofline_efficiency or 0) < 0.85 for op in profile.operations)
    assert any("2.66 TB/s" in warning and "data sheet" in warning for warning in profile.warnings)


def test_kernels_of_cuda_graphs_tell_by_their_names_what_bounds_them(tmp_path):
    """A step of MaxText's Qwen3 1.7B on an H100, in JAX 0.11: 98 % of it runs in CUDA graphs."""
    file = tmp_path / "h100.xplane.pb"
    file.write_bytes(gzip.decompress((DATA / "h100_cuda_graphs.xplane.pb.gz").read_bytes()))
    profile = read_profile(file)
    assert (profile.devices, profile.kpis.step_time_s) == (1, pytest.approx(0.991, abs=1e-3))
    assert profile.kpis.duty_cycle == pytest.approx(0.98, abs=5e-3)
    shares = {bound: sum(op.fraction for op in profile.operations if op.bound == bound) for bound in BOUNDS}
    assert shares == pytest.approx({"compute": 0.686, "hbm": 0.25, "unknown": 0.03}, abs=0.01)
    assert "nvjet" in profile.operations[0].name
    assert profile.roofline.program_bound == "unknown"
    assert ["CUDA graphs" in gap.what for gap in profile.gaps] == [True]
    assert "xla_gpu_enable_command_buffer" in (profile.gaps[0].capture or "")
