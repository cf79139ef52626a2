import pytest
from xspaces import TRAINING, Op, tpu_profile

from asap.profiles import Profile, read_profile

GIB = 2**30


@pytest.fixture
def read(write):
    def read_bytes(data: bytes, **keys) -> Profile:
        return read_profile(write(data, **keys))

    return read_bytes


def by_name(profile: Profile) -> dict:
    return {operation.name: operation for operation in profile.operations}


def test_times_are_of_one_device_and_one_step(read):
    profile = read(tpu_profile(devices=4, steps=5, step_us=1000))
    assert (profile.extent, profile.devices, profile.hosts, profile.device_type) == ("step", 4, 1, "TPU v5 lite")
    for op in TRAINING:
        found = by_name(profile)[op.name]
        assert (found.time_s, found.fraction, found.occurrences) == pytest.approx((op.us * 1e-6, op.us / 1000, 1))


def test_step_time_comes_from_the_marks(read):
    kpis = read(tpu_profile(steps=3, step_us=1250)).kpis
    assert (kpis.steps, kpis.step_time_stddev_s, kpis.input) == (3, 0, 0)
    assert kpis.step_time_s == kpis.step_time_min_s == kpis.step_time_max_s == pytest.approx(1.25e-3)
    assert kpis.idle == pytest.approx(1 - 900 / 1250, abs=0.001)


def test_rates_and_the_roofline_are_in_si_units(read):
    profile = read(tpu_profile())
    product = by_name(profile)["fusion.1"]
    assert (product.flops, product.flop_rate) == pytest.approx((60e9, 60e9 / 400e-6))
    assert (product.bytes_accessed, product.memory_bandwidth) == pytest.approx((2**20, 2**20 / 400e-6))
    used = (product.flop_utilisation, product.memory_utilisation, product.roofline_efficiency)
    assert used == pytest.approx((150 / 197, 2**20 / 400e-6 / 819e9, 150 / 197), rel=1e-3)
    assert (product.bound, product.shape, product.source) == ("compute", "bf16[8,8]{1,0}", "train.py:3")
    assert profile.roofline.peak_flop_rate == pytest.approx(197e12)
    assert profile.roofline.peak_hbm_bandwidth == pytest.approx(819e9, rel=1e-4)
    assert profile.roofline.ridge_point == pytest.approx(197e12 / 819e9, rel=1e-3)
    assert profile.roofline.program_bound == "compute"
    moved = sum(op.bytes for op in TRAINING)
    assert profile.roofline.operational_intensity == pytest.approx(60e9 / moved, rel=1e-3)


def test_collectives_are_summed_by_kind_and_waiting_counts(read):
    profile = read(tpu_profile())
    assert profile.kpis.communication == pytest.approx(0.35)
    assert [(c.kind, c.fraction, c.occurrences) for c in profile.kpis.collectives] == [
        ("all-gather", pytest.approx(0.2), pytest.approx(1)),
        ("reduce-scatter", pytest.approx(0.1), pytest.approx(1)),
    ]
    assert by_name(profile)["async-collective-done.5"].collective_wait


def test_an_asynchronous_pair_is_one_occurrence(read):
    pair = [
        Op("all-reduce-start.1", "all-reduce-start", 1, expression="f32[8] all-reduce-start(f32[8] %a)"),
        Op("all-reduce-done.1", "all-reduce-done", 99, expression="f32[8] all-reduce-done(f32[8] %a)"),
    ]
    (collective,) = read(tpu_profile(pair)).kpis.collectives
    assert (collective.kind, collective.occurrences) == ("all-reduce", pytest.approx(1))
    assert collective.time_s == pytest.approx(100e-6)


def test_a_custom_call_is_opaque_without_costs_and_its_name_may_tell_what_bounds_it(read):
    kernel = by_name(read(tpu_profile()))["closed_call.3"]
    assert kernel.opaque
    assert kernel.bound == "unknown"
    assert (kernel.flops, kernel.flop_utilisation, kernel.roofline_efficiency) == (None, None, None)
    named = Op("te_fused_attn_forward_ffi.1", "custom-call", 500, expression="f32[8] custom-call(f32[8] %a)")
    (attention,) = read(tpu_profile([named])).operations
    assert (attention.opaque, attention.bound, attention.bound_by_name) == (True, "compute", True)
    costly = Op("call.1", "custom-call", 500, 10**9, 2**20, "f32[8] custom-call(f32[8] %a)")
    assert not read(tpu_profile([costly])).operations[0].opaque


def test_bytes_that_move_beside_other_operations_are_no_rate(read):
    copy = [
        Op("copy-start.1", "copy-start", 1, 0, 2**30, "(f32[8], u32[]) copy-start(f32[8] %a)"),
        Op("copy-done.1", "copy-done", 500, 0, 2**30, "f32[8] copy-done((f32[8], u32[]) %b)"),
    ]
    operations = by_name(read(tpu_profile([*copy, *TRAINING[:1]], step_us=2000)))
    start, done = operations["copy-start.1"], operations["copy-done.1"]
    assert (start.memory_bandwidth, start.roofline_efficiency, start.bytes_accessed) == (None, None, None)
    assert done.memory_bandwidth is None
    assert start.bound == done.bound == "hbm"
    assert start.shape == "(f32[8], u32[])"


def test_infeed_is_bound_by_the_host(read):
    infeed = Op("infeed.1", "infeed", 300, expression="f32[8] infeed(token[] %a)")
    operation = by_name(read(tpu_profile([infeed, *TRAINING[:1]])))["infeed.1"]
    assert operation.bound == "host"
    assert not operation.is_collective


def test_without_marks_the_repeated_module_gives_the_step_time(read):
    profile = read(tpu_profile(marked=False, steps=4))
    assert (profile.extent, profile.kpis.steps) == ("window", 4)
    assert profile.kpis.step_time_s == pytest.approx(900e-6)
    assert any("jit_train_step" in warning and "4 runs" in warning for warning in profile.warnings)
    assert any("none is marked" in gap.what for gap in profile.gaps)
    product = by_name(profile)["fusion.1"]
    assert product.time_s == pytest.approx(4 * 400e-6)
    assert product.occurrences == pytest.approx(4)


def test_one_run_of_a_module_is_no_step(read):
    kpis = read(tpu_profile(marked=False, steps=1)).kpis
    assert (kpis.step_time_s, kpis.steps) == (None, None)


def test_a_second_host_adds_devices_and_leaves_times_alone(write):
    one = read_profile(write(tpu_profile(), run="one"))
    for host in ("a", "b"):
        file = write(tpu_profile(), run="two", host=host)
    two = read_profile(file.parent)
    assert (two.hosts, two.devices) == (2, 2 * (one.devices or 0))
    assert [op.name for op in two.operations] == [op.name for op in one.operations]
    for ours, theirs in zip(two.operations, one.operations, strict=True):
        assert ours.time_s == pytest.approx(theirs.time_s)
        assert ours.fraction == pytest.approx(theirs.fraction)
        assert ours.occurrences == pytest.approx(theirs.occurrences)
        assert ours.flops == (theirs.flops if theirs.flops is None else pytest.approx(theirs.flops))
    assert two.kpis.communication == pytest.approx(one.kpis.communication)
    assert two.kpis.step_time_s == pytest.approx(one.kpis.step_time_s)


def test_steps_cut_off_by_the_window_do_not_stretch_the_others(write):
    profile = read_profile(write(tpu_profile(steps=2)))
    assert sum(op.time_s or 0 for op in profile.operations) == pytest.approx(900e-6)


def test_an_unchanged_file_is_read_once(write):
    stages: list[str] = []
    file = write(tpu_profile())
    profile = read_profile(file, progress=stages.append)
    assert stages[0].startswith("reading")
    assert read_profile(file, progress=stages.append) is profile
    assert len(stages) == 2
