import pytest
from xspaces import plane, serialised

from asap.profiles import read_profile

LIMIT = 600_000


def test_the_recorded_run_has_the_facts_of_its_events(recorded):
    profile = read_profile(recorded)
    assert (profile.device_type, profile.devices, profile.hosts, profile.extent) == ("CPU", 8, 1, "step")
    kpis = profile.kpis
    assert kpis.steps == 3
    assert 0 < (kpis.step_time_min_s or 0) <= (kpis.step_time_s or 0) <= (kpis.step_time_max_s or 0) < 5
    assert {c.kind for c in kpis.collectives} >= {"all-reduce", "all-gather"}
    assert kpis.communication == pytest.approx(sum(c.fraction for c in kpis.collectives))
    assert 0 < (kpis.communication or 0) < 1
    assert (kpis.duty_cycle or 0) + (kpis.idle or 0) == pytest.approx(1)
    assert profile.warnings == ()


def test_what_a_cpu_cannot_tell_is_unknown_and_a_gap(recorded):
    profile = read_profile(recorded)
    for operation in profile.operations:
        assert operation.flops is operation.flop_rate is operation.bytes_accessed is None
        assert operation.bound == "unknown"
    assert profile.roofline.peak_flop_rate is None
    (gap,) = profile.gaps
    assert "FLOPs" in gap.what
    assert "profiler_steps=5" in (gap.capture or "")


def test_operations_run_a_whole_number_of_times_a_step(recorded):
    for operation in read_profile(recorded).operations:
        assert operation.occurrences == pytest.approx(round(operation.occurrences or 0), abs=1e-9)
        assert (operation.time_s or 0) >= 0


def test_the_layers_of_the_scan_run_twice_and_the_loop_itself_takes_nothing_of_them(recorded):
    operations = read_profile(recorded).operations
    loops = [op for op in operations if op.category == "while"]
    assert loops
    assert sum(op.occurrences == 2 for op in operations) > 50
    assert sum(op.fraction for op in loops) < 0.2


def test_the_recorded_file_is_small_and_tells_nothing_of_the_machine(recorded):
    (file,) = recorded.rglob("*.xplane.pb")
    data = file.read_bytes()
    assert file.name == "host.xplane.pb"
    assert len(data) < LIMIT
    for word in (b"/home", b"/root", b"/tmp", b"/work", b"/usr", b".py", b"site-packages", b"XFLAGS"):
        assert word not in data


def thread(*spans: tuple[str, float, float], devices: int = 1, run: int = 1):
    """A host thread on which operations run; times in µs."""
    host = plane("/host:CPU")
    for device in range(devices):
        events = [
            host.event(name, start, us, hlo_op=name, hlo_module="jit_f", run_id=run, device_ordinal=device)
            for name, start, us in spans
        ]
        host.line(device + 1, f"pool/{device}", events)
    return serialised([host])


def test_a_loop_is_charged_without_its_body(write):
    spans = (("while.1", 0, 100), ("dot.2", 10, 30), ("dot.2", 50, 30), ("add.3", 110, 40))
    profile = read_profile(write(thread(*spans, devices=2)))
    times = {op.name: (op.time_s, op.occurrences) for op in profile.operations}
    assert times["while.1"] == (pytest.approx(40e-6), 1)
    assert times["dot.2"] == (pytest.approx(60e-6), 2)
    assert times["add.3"] == (pytest.approx(40e-6), 1)
    assert sum(op.fraction for op in profile.operations) == pytest.approx(140 / 150)
    assert profile.kpis.duty_cycle == pytest.approx(140 / 150)
    assert profile.devices == 2


def test_categories_come_from_the_names(write):
    names = ("psum.3", "wrapped_add.1", "multiply_add_fusion.7", "ppermute.2", "all-gather.5", "dot.9")
    profile = read_profile(write(thread(*((name, 10.0 * i, 5.0) for i, name in enumerate(names)))))
    found = {op.name: (op.category, op.collective) for op in profile.operations}
    assert found["wrapped_add.1"] == ("add", None)
    assert found["multiply_add_fusion.7"] == ("fusion", None)
    assert found["dot.9"] == ("dot", None)
    assert (found["psum.3"][1], found["ppermute.2"][1]) == ("all-reduce", "collective-permute")
    assert found["all-gather.5"] == ("all-gather", "all-gather")
    assert profile.kpis.communication == pytest.approx(15 / 55)


def test_without_marks_runs_of_the_module_give_the_step_time(write):
    host = plane("/host:CPU")
    for device in range(2):
        events = [
            host.event("dot.1", 100 * run, 80, hlo_op="dot.1", hlo_module="jit_step", run_id=run, device_ordinal=device)
            for run in range(3)
        ]
        host.line(device + 1, f"pool/{device}", events)
    profile = read_profile(write(serialised([host])))
    assert profile.extent == "window"
    assert (profile.kpis.steps, profile.kpis.step_time_s) == (3, pytest.approx(80e-6))
