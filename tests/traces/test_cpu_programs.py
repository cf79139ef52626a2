"""What XLA compiles for a CPU, against decoders of scripts/record_run.py: how classes of operations differ by mesh."""

from dataclasses import replace
from operator import attrgetter

import pytest

from asap.hardware import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.from_trace.factors import modelled
from asap.prediction.from_trace.run import Run, virtual_devices
from tests.cases import cases

HEADS = {"head_dim": 64, "gated_mlp": True, "tied_embeddings": True}
MODELS = {
    "wide": Architecture(layers=2, d_model=512, heads=8, kv_heads=4, d_ff=1024, vocab=2048, **HEADS),
    "middle": Architecture(layers=3, d_model=384, heads=6, kv_heads=2, d_ff=1024, vocab=1024, **HEADS),
    "deep": Architecture(layers=4, d_model=256, heads=4, kv_heads=4, d_ff=1024, vocab=512, **HEADS),
    "long": Architecture(layers=2, d_model=256, heads=4, kv_heads=2, d_ff=512, vocab=1024, **HEADS),
}
SEQUENCES = {"wide": 64, "middle": 128, "deep": 128, "long": 512}
WORK = Workload(global_batch=8, precision="fp32", optimizer="adam", attention="dot_product", framework="JAX")


def run(name, mesh, hardware=None, remat="none"):
    data, seq, model = mesh.split("x")
    plan = Plan.parse(f"data={data} seq={seq} model={model} remat={remat}")
    work = WORK.model_copy(update={"sequence_length": SEQUENCES[name]})
    return Run(MODELS[name], work, hardware or virtual_devices(8), plan)


def ratio(part, name, mesh, base, **options):
    return part(modelled(run(name, mesh, **options))) / part(modelled(run(name, base, **options)))


@cases("name, mesh, base, measured")
def test_the_tensor_axis_splits_most_of_what_is_no_product(name, mesh, base, measured):
    memory = attrgetter("memory")
    on_cpu = ratio(memory, name, mesh, base)
    as_on_an_accelerator = ratio(memory, name, mesh, base, hardware=resolve_hardware("a100-80gb", devices=8).slice)
    assert on_cpu == pytest.approx(measured, rel=0.16)
    assert abs(on_cpu / measured - 1) < abs(as_on_an_accelerator / measured - 1)


def test_sums_over_keys_are_fused_where_no_dimension_of_the_scores_is_one():
    products = attrgetter("products")
    measured = {"4x2x1": 0.943, "4x1x2": 0.983}
    for mesh, recorded in measured.items():
        assert ratio(products, "long", mesh, "8x1x1") == pytest.approx(recorded, abs=0.02)
    on_an_accelerator = resolve_hardware("a100-80gb", devices=8).slice
    assert ratio(products, "long", "4x2x1", "8x1x1", hardware=on_an_accelerator) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("mesh", "measured"), [("4x2x1", 0.952), ("2x4x1", 0.963)])
def test_sums_over_the_width_are_fused_where_a_device_has_more_than_one_sequence(mesh, measured):
    """Sums over the keys are not, under any of these meshes: its heads share no keys."""
    assert ratio(lambda found: found.products, "deep", mesh, "8x1x1") == pytest.approx(measured, abs=0.035)


@pytest.mark.parametrize(("mesh", "measured"), [("4x2x1", 0.89), ("2x4x1", 0.87)])
def test_long_scores_are_slow_to_transpose_where_their_columns_stride_over_pages(mesh, measured):
    assert ratio(lambda found: found.memory, "long", mesh, "8x1x1") == pytest.approx(measured, rel=0.13)


def test_a_stride_that_is_no_power_of_two_spreads_over_the_cache():
    long = run("long", "8x1x1")
    longer = replace(long, workload=long.workload.model_copy(update={"sequence_length": 520}))
    assert modelled(longer).memory < modelled(long).memory


def test_weights_as_gathered_count_for_every_device():
    model = MODELS["wide"].model_copy(update={"vocab": 64})
    work = WORK.model_copy(update={"sequence_length": 16})
    whole, halves = (
        modelled(replace(run("wide", mesh), architecture=model, workload=work)).memory for mesh in ("8x1x1", "4x1x2")
    )
    assert halves < 0.9 * whole


def test_scores_that_a_kernel_keeps_do_not_move():
    whole = run("long", "8x1x1")
    kept = replace(whole, workload=whole.workload.model_copy(update={"attention": "flash"}))
    assert modelled(kept).memory < modelled(whole).memory


def test_what_is_computed_again_moves_again():
    again, once = (modelled(run("wide", "8x1x1", remat=remat)).memory for remat in ("full", "none"))
    assert 1.1 * once < again < 1.6 * once


def test_activations_in_fp32_move_twice_the_bytes():
    whole = run("long", "8x1x1")
    narrow = replace(whole, workload=whole.workload.model_copy(update={"precision": "bf16"}))
    assert modelled(whole).memory == pytest.approx(2 * modelled(narrow).memory, rel=0.15)
