import pytest

from asap.profiles.corrections import corrected
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import HloRow, MemoryProfile, Peaks, RooflineRow, Summary

GIB = 2**30
GEMM = (
    "%c = (bf16[4096,4096]{1,0}, s8[8]{0}) custom-call(bf16[4096,4096] %a, bf16[4096,4096] %b), "
    'custom_call_target="__cublas$gemm"'
)


def conversion(device, flop_rate, bandwidth, *rows):
    """``rows``: name, HLO, GFLOP/s, GiB/s; each takes 1 ms."""
    operations = tuple(
        HloRow(
            category="fusion", hlo_op_name=name, hlo_op_expression=text, occurrences=1, total_self_time=1000,
            total_self_time_percent=10, model_flop_rate=rate, hbm_bw=moved, bound_by="HBM",
        )
        for name, text, rate, moved in rows
    )  # fmt: skip
    program = RooflineRow(rank=0, operation="Program", total_time=10_000, bound_by="HBM", roofline_efficiency=0.5)
    listed = (
        RooflineRow(rank=1, operation=r[0], total_time=1000, bound_by="HBM", roofline_efficiency=0.9) for r in rows
    )
    return Conversion(
        summary=Summary(device_type=device), steps=(), operations=operations, roofline=(program, *listed),
        peaks=Peaks(peak_flop_rate=flop_rate / 1e9, peak_hbm_bw=bandwidth / GIB), kernels=(), memory=MemoryProfile(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("device", "flop_rate", "stated", "true"),
    [
        ("AMD GPU - gfx942", 1.3074e15, 2.6624e12, 5.3e12),
        ("AMD GPU - gfx942", 1.3074e15, 3.072e12, 6e12),
        ("AMD GPU - gfx950", 2.5e15, 4.096e12, 8e12),
        ("AMD GPU - gfx942", 1.3074e15, 5.3e12, 5.3e12),
        ("AMD GPU - gfx942", 1.3074e15 / 8, 2.6624e12 / 8, 2.6624e12 / 8),
        ("Nvidia GPU (Hopper)", 9.89e14, 3.35e12, 3.35e12),
        ("Nvidia GPU (Hopper)", 9.89e14, 4.8e12, 4.8e12),
        ("Nvidia GPU (Ampere)", 3.12e14, 1.555e12, 1.555e12),
        ("TPU v6 Lite", 9.18e14, 8e11, 8e11),
        ("AMD GPU - gfx90a", 3.8e14, 1.6e12, 1.6e12),
    ],
)
def test_only_a_halved_bandwidth_of_a_whole_known_chip_is_replaced(device, flop_rate, stated, true):
    found, told = corrected(conversion(device, flop_rate, stated))
    assert (found.peaks.peak_hbm_bw or 0) * GIB == pytest.approx(true)
    assert bool(told) == (stated != true)
    assert all("https://" in sentence for sentence in told)


def test_efficiencies_and_bounds_follow_the_true_peaks():
    # 800 TFLOP/s are 61 % of the compute roof, 2.5 TB/s 94 % of the halved HBM roof, and 47 % of the true one
    found, _ = corrected(
        conversion("AMD GPU - gfx942", 1.3074e15, 2.6624e12, ("f", "%f = fusion()", 8e5, 2.5e12 / GIB))
    )
    program, row = found.roofline
    assert (row.bound_by, row.roofline_efficiency) == ("Compute", pytest.approx(8e14 / 1.3074e15))
    assert found.operations[0].bound_by == "Compute"
    assert program.roofline_efficiency == pytest.approx(8e13 / 1.3074e15)


def test_a_library_product_gets_its_flops_bound_and_efficiency():
    found, told = corrected(conversion("Nvidia GPU (Hopper)", 9.89e14, 3.35e12, ("c", GEMM, 0, 0)))
    assert told == ()
    assert found.operations[0].model_flop_rate == pytest.approx(2 * 4096**3 / 1e-3 / 1e9)
    assert (found.roofline[1].bound_by, found.roofline[1].roofline_efficiency) == (
        "Compute",
        pytest.approx(0.139, rel=0.01),
    )


def test_without_anything_to_correct_the_tables_stay_as_they_are():
    tables = conversion("TPU v6 Lite", 9.18e14, 1.638e12, ("f", "%f = fusion()", 8e5, 100.0))
    assert corrected(tables) == (tables, ())
