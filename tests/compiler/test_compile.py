import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asap.compiler.programs.options import CompileLimits
from asap.compiler.programs.request import CompileRequest, make_request
from asap.compiler.toolchain.compile import compile_all, max_workers
from asap.compiler.toolchain.interpreters import versions_of
from asap.compiler.toolchain.process import run_child
from asap.core.errors import BadInputError, PlanError, UsageError
from asap.hardware import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from tests.cases import cases

pytestmark = pytest.mark.compiles

HERE = Path(__file__).parent
needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")


def request_for(step, plan="data=2 model=2", hardware="v5e-4"):
    slice_ = resolve_hardware(hardware).slice
    name = f"steps_of_a_user:{step}"
    return make_request(slice_, Plan.parse(plan), None, Workload(), train_step=name, path=(str(HERE),))


@needs_libtpu
def test_a_program_is_compiled_once_and_then_remembered(home):
    (first,) = compile_all([request_for("matmul")])
    assert first.status == "compiled"
    assert first.memory.peak >= 3 * 1024 * 1024 * 2 / 4
    assert "is_scheduled=true" in first.program
    assert len(first.coordinates) == 4
    (again,) = compile_all([request_for("matmul")], limits=CompileLimits(seconds=0))
    assert again == first


@needs_libtpu
@cases("hardware, slices, plan, order")
def test_every_generation_several_slices_and_orders_of_devices_are_described(hardware, slices, plan, order):
    slice_ = resolve_hardware(hardware, slices=slices).slice
    request = make_request(
        slice_, Plan.parse(plan), None, Workload(), train_step="steps_of_a_user:matmul", path=(str(HERE),),
        mapping=order,
    )  # fmt: skip
    outcome = run_child(request, CompileLimits())
    assert outcome.status == "compiled", outcome.message
    assert len(outcome.coordinates) == slice_.devices
    assert not order or [place[:2] for place in outcome.coordinates[:3]] == [(0, 0), (1, 0), (0, 1)]
    assert set(outcome.slices) == set(range(slices))


@needs_libtpu
def test_what_does_not_fit_says_how_much_it_needs():
    outcome = run_child(request_for("too_large"), CompileLimits())
    assert outcome.status == "does_not_fit"
    assert outcome.needed_bytes > 2**37 > outcome.available_bytes > 2**33


@needs_libtpu
@pytest.mark.parametrize("step", ["wrong", "wrong_in_tracing"])
def test_a_step_that_raises_is_reported_with_its_line(step):
    outcome = run_child(request_for(step), CompileLimits())
    assert outcome.status == "step_failed"
    assert "steps_of_a_user.py:" in outcome.message


@needs_libtpu
def test_a_crash_a_hang_and_a_glutton_are_outcomes_and_the_next_goes_on(home):
    crashed, compiled = compile_all([request_for(step) for step in ("aborts", "matmul")])
    hung = run_child(request_for("hangs"), CompileLimits(seconds=3))
    assert (crashed.status, hung.status, compiled.status) == ("crashed", "timed_out", "compiled")
    assert "SIGABRT" in crashed.message
    greedy = run_child(request_for("eats_memory"), CompileLimits(memory_bytes=2**31))
    assert greedy.status == "out_of_host_memory"


@needs_libtpu
def test_the_least_effort_is_another_program_over_the_same_arrays(home):
    full, quick = request_for("matmul"), request_for("matmul").model_copy(update={"effort": "least"})
    slow, fast = compile_all([full, quick])
    assert (slow.effort, fast.effort) == ("full", "least")
    assert (fast.memory.arguments, fast.memory.outputs) == (slow.memory.arguments, slow.memory.outputs)
    assert fast.program != slow.program
    assert compile_all([quick], limits=CompileLimits(seconds=0)) == [fast]


@needs_libtpu
def test_what_does_not_finish_is_compiled_with_reduced_effort(home, tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_TEST_MARKERS", str(tmp_path))
    (found,) = compile_all([request_for("hangs_once")], limits=CompileLimits(seconds=15))
    assert (found.status, found.effort) == ("compiled", "reduced")
    assert found.full_effort_failure.startswith("stopped after 15")


@needs_libtpu
def test_a_crash_is_not_remembered(home):
    compile_all([request_for("aborts")])
    assert not list(home.glob("compiled/*"))


@needs_libtpu
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_the_command(ending, tmp_path):
    script = (
        "from test_compile import request_for; from asap.compiler.toolchain.compile import compile_all;"
        "compile_all([request_for('hangs')])"
    )
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent.parent}", "TMPDIR": str(tmp_path)}
    environment["ASAP_HOME"] = str(tmp_path / "home")
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL)
    child = _await(lambda: _children_of(parent.pid))
    parent.send_signal(ending)
    assert parent.wait(timeout=30) != 0
    assert _await(lambda: not _alive(child[0]))
    if ending is signal.SIGINT:
        assert not list(tmp_path.glob("asap-compile-*"))


def test_only_plans_for_the_hardware_and_slices_that_libtpu_describes_are_taken():
    with pytest.raises(BadInputError, match="libtpu does not describe"):
        make_request(resolve_hardware("v3-8").slice, Plan.parse("data=8"), None, Workload())
    for hardware in ("v5e-4", "h100-4"):
        with pytest.raises(PlanError, match="not to 4"):
            make_request(resolve_hardware(hardware).slice, Plan.parse("data=8"), None, Workload())
    with pytest.raises(PlanError, match="does not divide"):
        make_request(resolve_hardware("v5e-4").slice, Plan.parse("data=4"), None, Workload(global_batch=6))


def test_for_gpus_the_cpu_pipeline_stands_in(home):
    (found,) = compile_all([request_for("matmul", hardware="h100-4")])
    assert (found.status, found.memory) == ("sharded", None)
    assert found.argument_bytes == 2 * 1024 * 1024 * 2 / 2
    assert "libtpu" not in found.versions
    (again,) = compile_all([request_for("matmul", hardware="h100-4")], limits=CompileLimits(seconds=0))
    assert again == found


def test_the_last_words_of_a_compiler_that_died_are_those_that_say_something(tmp_path, monkeypatch):
    request = request_for("aborts", hardware="h100-4")
    message = run_child(request, CompileLimits()).message
    assert "SIGABRT" in message
    assert "http" not in message


def test_the_fingerprint_changes_with_all_that_matters():
    base = request_for("matmul")
    others = [
        request_for("wrong"), request_for("matmul", plan="data=4"), request_for("matmul", hardware="v6e-4"),
        base.model_copy(update={"model": Architecture(layers=2)}),
        base.model_copy(update={"workload": Workload(global_batch=8)}),
        base.model_copy(update={"step_source": "edited"}), base.model_copy(update={"effort": "least"}),
        base.model_copy(update={"flags": ("--xla_tpu_scoped_vmem_limit_kib=98304",)}),
    ]  # fmt: skip
    keys = {request.fingerprint({"libtpu": "1"}) for request in (base, *others)} | {base.fingerprint({"libtpu": "2"})}
    assert len(keys) == len(others) + 2
    assert base.model_copy(update={"path": ("elsewhere",)}).fingerprint({}) == base.fingerprint({})


def test_what_the_reference_step_does_not_read_makes_no_other_program():
    base = CompileRequest(
        chip="v5e", topology=(2, 2), slices=1, plan=Plan.parse("data=4"), model=Architecture(layers=2),
        workload=Workload(global_batch=8),
    )  # fmt: skip
    same = [
        {"workload": Workload(global_batch=8, framework="MaxText", loss_chunks=1, scan_layers=True)},
        {"workload": Workload(global_batch=8, head_gathered_once=True)},
        {"workload": Workload(global_batch=8, loss_chunks=1, head_gathered_once=True)},
        {"workload": Workload(global_batch=8, precision="bf16")}, {"plan": Plan.parse("data=4 microbatches=1")},
        {"plan": Plan.parse("data=4 remat=full")}, {"model": Architecture(layers=2, name="mine")},
    ]  # fmt: skip
    others = [
        {"workload": Workload(global_batch=8, loss_chunks=2)},
        {"workload": Workload(global_batch=8, loss_chunks=2, head_gathered_once=True)},
        {"workload": Workload(global_batch=8, scan_layers=False)},
        {"workload": Workload(global_batch=8, precision="fp32")},
        {"workload": Workload(global_batch=8, weight_precision="bf16")},
        {"plan": Plan.parse("data=4 microbatches=2")}, {"model": Architecture(layers=2, qk_norm=True)},
    ]  # fmt: skip
    assert {base.model_copy(update=change).fingerprint({}) for change in same} == {base.fingerprint({})}
    assert len({base.model_copy(update=change).fingerprint({}) for change in others} - {base.fingerprint({})}) == len(
        others
    )


@needs_libtpu
def test_an_unknown_engine_is_refused(home):
    with pytest.raises(UsageError, match="unknown engine"):
        compile_all([request_for("matmul")], engine="slurm")


def test_there_is_always_a_worker():
    assert 1 <= max_workers() <= (os.cpu_count() or 1)


def _children_of(pid):
    path = Path(f"/proc/{pid}/task")
    return [int(c) for task in path.glob("*/children") for c in task.read_text().split()] if path.exists() else []


def _alive(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def _await(condition, seconds=30):
    for _ in range(seconds * 20):
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come about")


def test_another_python_needs_the_compiler_of_tpus_for_tpus_alone():
    step = {"train_step": "mine:step", "python": sys.executable}
    on_gpus = CompileRequest(chip="h100", topology=(), slices=1, plan=Plan.parse("data=8"), **step)
    assert "libtpu" not in versions_of([on_gpus])[0]
    if importlib.util.find_spec("libtpu"):
        on_tpus = on_gpus.model_copy(update={"chip": "v5e", "topology": (2, 4)})
        assert "libtpu" in versions_of([on_tpus])[0]
