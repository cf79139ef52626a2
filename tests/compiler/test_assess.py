import json

import pytest

from asap.compiler.assess import assess
from asap.compiler.calibration import load_calibration
from asap.compiler.programs.request import CompiledMemory, CompileOutcome, make_request
from asap.compiler.verification import Verification
from asap.core.units import GIB
from asap.hardware import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.from_architecture import predict

SLICE = resolve_hardware("v5e-16").slice
MODEL = Architecture(name="small", layers=6, d_model=2048, d_ff=8192, heads=16, kv_heads=16, head_dim=128, vocab=32000)
WORKLOAD = Workload(global_batch=16, sequence_length=2048)
MEMORY = CompiledMemory(peak=2 * GIB, arguments=GIB, outputs=GIB, aliased=GIB, temporaries=GIB, code=0, host=0)
COORDINATES = tuple((x, y, 0) for x in range(4) for y in range(4))


def ask(plan="data=16 remat=full", hardware=SLICE):
    return make_request(hardware, Plan.parse(plan), MODEL, WORKLOAD)


def compiled(text):
    return CompileOutcome(
        status="compiled", memory=MEMORY, coordinates=COORDINATES, slices=(0,) * 16, seconds=30.0, program=text
    )


def test_a_compiled_program_yields_time_collectives_and_memory(program):
    found = assess(ask(), compiled(program("fsdp_scan_v5e_4x4")), SLICE, None)
    assert (found.fits, found.step_time.provenance) == (True, "compiled")
    assert {(row.kind, row.axes) for row in found.collectives} == {("all-gather", "data"), ("all-reduce", "data")}
    assert found.step_time.value == pytest.approx(
        sum(row.seconds for row in found.compute) + sum(row.exposed_s for row in found.collectives)
    )
    assert "2.00 GiB of 15.8 GiB" in found.verdict
    calibrated = found.calibrated_step_time
    assert calibrated.value == load_calibration().calibrated("v5e", 1, found.step_time.value).value
    assert calibrated.low < calibrated.value < calibrated.high


def test_a_reduced_effort_yields_a_time_that_no_constant_is_for(program):
    outcome = compiled(program("fsdp_scan_v5e_4x4")).model_copy(update={"effort": "reduced"})
    found = assess(ask(), outcome, SLICE, None)
    assert found.effort == "reduced"
    assert found.step_time is not None
    assert found.calibrated_step_time is None


def test_the_least_effort_yields_memory_and_collectives_but_no_time(program):
    outcome = compiled(program("fsdp_scan_v5e_4x4")).model_copy(
        update={"effort": "least", "full_effort_failure": "stopped after 9 s"}
    )
    found = assess(ask(), outcome, SLICE, predict(Plan.parse("data=16 remat=full"), MODEL, WORKLOAD, SLICE)[0])
    assert (found.fits, found.step_time) == (True, None)
    assert found.compute == ()
    assert {row.busy_s for row in found.collectives} == {None}
    assert "the full compilation was stopped after 9 s" in found.notes[0]
    assert [text.partition(":")[0] for text in found.differences] == ["HBM"]


@pytest.mark.parametrize(("effort", "fits"), [("full", True), ("least", None)])
def test_least_effort_near_the_limit_says_that_the_plan_may_not_fit(effort, fits):
    memory = MEMORY.model_copy(update={"peak": 15 * GIB})
    near = CompileOutcome(status="compiled", memory=memory, effort=effort)
    over = CompileOutcome(status="does_not_fit", needed_bytes=16 * GIB, available_bytes=15.75 * GIB, effort=effort)
    found = assess(ask(), near, SLICE, None)
    assert found.fits is fits
    assert ("may not fit" in found.verdict) == (fits is None)
    assert assess(ask(), over, SLICE, None).fits is (None if fits is None else False)
    assert assess(ask(), over.model_copy(update={"needed_bytes": 20 * GIB}), SLICE, None).fits is False


def test_what_lies_in_host_memory_is_not_counted_as_hbm(program):
    outcome = compiled(program("fsdp_scan_v5e_4x4"))
    memory = MEMORY.model_copy(update={"peak": 39 * GIB, "host": 28 * GIB})
    expected = predict(Plan.parse("data=16 remat=full"), MODEL, WORKLOAD, SLICE)[0]
    found = assess(ask(), outcome.model_copy(update={"memory": memory}), SLICE, expected)
    assert found.memory.hbm_peak is None
    assert "fits: within 15.8 GiB HBM, 28.0 GiB in host memory" in found.verdict
    assert not any("HBM" in sentence for sentence in found.differences)


def test_the_result_is_a_versioned_document(program):
    found = assess(ask(), compiled(program("fsdp_scan_v5e_4x4")), SLICE, None, "run-1")
    document = json.loads(found.to_json())
    assert document["schema"] == "asap.verification/2"
    assert Verification.model_validate(document) == found


@pytest.mark.parametrize("text", ["garbage", "HloModule m, is_scheduled=true\n\n%broken"])
def test_a_schedule_that_cannot_be_read_leaves_the_memory(text):
    found = assess(ask(), compiled(text), SLICE, None)
    assert found.memory == MEMORY
    assert (found.fits, found.step_time) == (True, None)
    assert any("cannot be read" in note for note in found.notes)


def test_what_does_not_fit_is_told_with_both_amounts():
    outcome = CompileOutcome(status="does_not_fit", needed_bytes=20 * GIB, available_bytes=15.75 * GIB)
    found = assess(ask(), outcome, SLICE, None)
    assert found.fits is False
    assert "20.0 GiB" in found.verdict
    assert "15.8 GiB" in found.verdict


def test_a_plan_that_nearly_fits_is_worth_compiling_with_ones_own_step():
    def notes(needed, request):
        outcome = CompileOutcome(status="does_not_fit", needed_bytes=needed * GIB, available_bytes=15.75 * GIB)
        return " ".join(assess(request, outcome, SLICE, None).notes)

    theirs = ask().model_copy(update={"train_step": "mine:step"})
    assert "it is 205 MiB too large" in notes(15.95, ask())
    assert "compile your own" not in notes(16.5, ask())
    assert "compile your own" not in notes(15.95, theirs)


def test_a_plan_that_barely_fits_is_worth_it_too():
    def notes(peak, request):
        memory = MEMORY.model_copy(update={"peak": int(peak * GIB), "host": 0})
        return " ".join(assess(request, CompileOutcome(status="compiled", memory=memory), SLICE, None).notes)

    theirs = ask().model_copy(update={"train_step": "mine:step"})
    assert "it leaves 768 MiB free" in notes(15, ask())
    assert "compile your own" not in notes(13.5, ask())
    assert "compile your own" not in notes(15, theirs)


@pytest.mark.parametrize("status", ["step_failed", "refused", "crashed", "timed_out", "out_of_host_memory"])
def test_no_answer_is_neither_yes_nor_no(status):
    found = assess(ask(), CompileOutcome(status=status, message="the reason"), SLICE, None)
    assert found.fits is None
    assert "the reason" in found.verdict


def test_a_mesh_axis_that_shares_a_torus_axis_is_named_with_its_cost(program):
    hardware = resolve_hardware("v5e-256").slice
    places = tuple((x, y, 0) for x in range(16) for y in range(16))
    outcome = compiled(program("fsdp_scan_v5e_4x4")).model_copy(update={"coordinates": places, "slices": (0,) * 256})
    found = assess(ask("data=16 seq=2 model=8 remat=full", hardware), outcome, hardware, None)
    told = {note.split()[0]: note for note in found.notes if "shares a torus axis" in note}
    assert set(told) == {"seq", "model"}
    assert "reach 50.0 GB/s of the 100 GB/s" in told["model"]


def test_what_the_cpu_pipeline_tells_of_gpus_is_marked_and_has_no_times(program):
    gpus = resolve_hardware("h100-16").slice
    outcome = CompileOutcome(
        status="sharded", argument_bytes=GIB, coordinates=((),) * 16, slices=(0,) * 16,
        program=program("fsdp_scan_v5e_4x4"),
    )  # fmt: skip
    expected = predict(Plan.parse("data=16 remat=full"), MODEL, WORKLOAD, gpus)[0]
    found = assess(ask(hardware=gpus), outcome, gpus, expected)
    assert (found.fits, found.memory, found.step_time, found.compute) == (None, None, None, ())
    assert "compiling for NVIDIA H100" in found.verdict
    assert {(row.kind, row.axes) for row in found.collectives} == {("all-gather", "data"), ("all-reduce", "data")}
    assert all(row.busy_s is None and row.exposed_s is None for row in found.collectives)
    assert any("CPU pipeline" in note for note in found.notes)
    assert found.differences == ()


def test_a_shared_torus_axis_that_costs_nothing_is_said_to(program):
    found = assess(ask("data=8 seq=2 remat=full"), compiled(program("fsdp_scan_v5e_4x4")), SLICE, None)
    assert any(note.startswith("seq shares") and note.endswith("lose no bandwidth by it") for note in found.notes)


def test_the_difference_from_the_prediction_names_its_parts(program):
    expected = predict(Plan.parse("data=16 remat=full"), MODEL, WORKLOAD, SLICE)[0]
    found = assess(ask(), compiled(program("fsdp_scan_v5e_4x4")), SLICE, expected)
    assert found.differences[0].startswith("step time:")
    assert any("compute and memory traffic" in line for line in found.differences)
    assert any(line.startswith("HBM:") for line in found.differences)


def test_what_the_reference_step_does_otherwise_is_said():
    workload = Workload(global_batch=16, sequence_length=2048, precision="fp8", optimizer="adafactor")
    request = make_request(SLICE, Plan.parse("data=16"), MODEL, workload)
    notes = " ".join(assess(request, CompileOutcome(status="refused"), SLICE, None).notes)
    assert "fp8" in notes
    assert "adafactor" in notes
    assert "full is assumed" in notes
