import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.diagnosis import Bottleneck, diagnose
from asap.hardware import load_chip
from asap.plans import Plan
from asap.profiles import Gap, Kpis, Operation, Profile
from tests.cases import cases


def operation(fraction, bound="unknown", **facts):
    return Operation(name=f"op {bound}", category="fusion", fraction=fraction, bound=bound, **facts)


def profile(*operations, **facts):
    return Profile(source="test", operations=operations, **facts)


def rules(diagnosis):
    return {finding.rule: finding for finding in diagnosis.findings}


@pytest.mark.parametrize(("bound", "bottleneck"), [("compute", "compute"), ("hbm", "hbm"), ("host", "host")])
def test_the_resource_with_the_most_time_is_the_bottleneck(bound, bottleneck):
    others = [operation(0.2, other) for other in ("compute", "hbm", "host") if other != bound]
    assert diagnose(profile(operation(0.5, bound), *others)).bottleneck == bottleneck


def test_collectives_are_communication_whatever_the_roofline_calls_them():
    facts = profile(
        operation(0.5, "hbm", collective="all-reduce", memory_utilisation=0.01), operation(0.3, "compute"),
        kpis=Kpis(duty_cycle=0.999, communication=0.5),
    )  # fmt: skip
    diagnosis = diagnose(facts, chip=load_chip("v5e"))
    assert diagnosis.bottleneck is Bottleneck.COMMUNICATION
    assert "communication, not compute" in diagnosis.correlation[0]
    evidence = rules(diagnosis)["communication_bound"].evidence
    assert (evidence[0].fact, evidence[0].quantity.value) == ("communication overhead", 0.5)


def test_collectives_that_stream_through_hbm_are_bound_by_it():
    chip = load_chip("v6e")
    limit = 2 * chip.torus.link_bandwidth / chip.hbm_bandwidth
    for utilisation, expected in ((limit * 1.01, "hbm"), (limit * 0.99, "communication")):
        facts = profile(operation(0.6, "hbm", collective="all-reduce", memory_utilisation=utilisation))
        assert diagnose(facts, chip=chip).bottleneck == expected
    assert diagnose(facts, chip=None).bottleneck is Bottleneck.COMMUNICATION


def test_opaque_is_opaque_and_not_inefficient():
    facts = profile(operation(0.4, opaque=True), operation(0.35, "compute"))
    diagnosis = diagnose(facts)
    assert diagnosis.bottleneck is Bottleneck.COMPUTE
    assert "not inefficient" in rules(diagnosis)["opaque_operations"].statement
    assert diagnose(profile(operation(0.6, opaque=True), operation(0.35, "compute"))).bottleneck is Bottleneck.OPAQUE
    fused = operation(0.6, "compute", opaque=True, bound_by_name=True).model_copy(update={"name": "fused_attn_ffi.1"})
    statement = diagnose(profile(fused, operation(0.3, "hbm"))).statement
    assert statement.endswith("goes to compute-bound operations, by the names of kernels: attention 60.0 %.")


def test_an_idle_device_is_found_between_operations():
    facts = profile(operation(0.2, "compute"), kpis=Kpis(duty_cycle=0.25))
    diagnosis = diagnose(facts)
    assert diagnosis.bottleneck is Bottleneck.IDLE
    assert rules(diagnosis)["idle_device"].share == pytest.approx(0.75)


def test_waiting_for_input_is_host():
    facts = profile(operation(0.3, "compute"), kpis=Kpis(input=0.6))
    assert diagnose(facts).bottleneck is Bottleneck.HOST


def test_uneven_steps_are_reported_above_the_noise_of_real_runs():
    def uneven(deviation):
        kpis = Kpis(step_time_s=1.0, step_time_stddev_s=deviation, steps=5)
        return "uneven_steps" in rules(diagnose(profile(operation(0.9, "compute"), kpis=kpis)))

    assert uneven(0.2)
    assert not uneven(0.02)


def test_a_full_memory_is_a_finding_and_without_times_the_bottleneck():
    full = {"peak_hbm_bytes": 15.9, "hbm_capacity_bytes": 16.0}
    timed = diagnose(profile(operation(0.9, "compute"), **full))
    assert timed.bottleneck is Bottleneck.COMPUTE
    assert "memory_capacity" in rules(timed)
    assert diagnose(profile(**full)).bottleneck is Bottleneck.MEMORY_CAPACITY


@pytest.mark.parametrize("facts", [None, profile(), profile(gaps=(Gap(what="everything", capture="capture it"),))])
def test_nothing_known_is_insufficient_evidence_with_the_capture(facts):
    diagnosis = diagnose(facts)
    assert diagnosis.bottleneck is Bottleneck.INSUFFICIENT_EVIDENCE
    assert diagnosis.missing
    assert all(gap.capture for gap in diagnosis.missing)
    assert diagnosis.findings[0].advice


def test_unknown_bounds_name_no_bottleneck():
    assert diagnose(profile(operation(0.9), operation(0.1, "compute"))).bottleneck is Bottleneck.INSUFFICIENT_EVIDENCE


def test_a_partial_list_is_compared_with_itself_and_said_to_be_partial():
    facts = Profile(
        source="a report", stated=True, kpis=Kpis(duty_cycle=0.99),
        operations=(operation(0.02, "hbm"), operation(0.01, "compute")),
    )  # fmt: skip
    diagnosis = diagnose(facts)
    assert diagnosis.partial
    assert diagnosis.bottleneck is Bottleneck.HBM
    assert rules(diagnosis)["hbm_bound"].share == pytest.approx(2 / 3)
    assert any("3.0 % of the step" in sentence for sentence in diagnosis.correlation)


def test_hbm_bound_without_a_model_axis_says_why():
    facts = profile(operation(0.9, "hbm"))
    assert "no model axis" in diagnose(facts, Plan.parse("data=8")).statement
    assert "no model axis" not in diagnose(facts, Plan.parse("data=4 model=2")).statement


def copies(fraction, **facts):
    return operation(fraction, "host", host_copy=True, time_s=fraction, bytes_accessed=28e9 * fraction, **facts)


def test_copies_with_the_host_are_their_own_bottleneck_and_not_hbm():
    diagnosis = diagnose(profile(copies(0.84), operation(0.03, "hbm")), chip=load_chip("v6e"))
    assert diagnosis.bottleneck is Bottleneck.HOST_TRANSFER
    assert "28.0 GB/s of the 32.0 GB/s" in diagnosis.statement
    assert "overlap can hide no more than that" in diagnosis.statement
    assert "offload less" in (diagnosis.findings[0].advice or "")
    assert "host_transfer_bound" not in rules(diagnose(profile(copies(0.02), operation(0.9, "compute"))))


def test_copies_that_other_work_could_hide_are_not_said_to_be_beyond_it():
    diagnosis = diagnose(profile(copies(0.3), operation(0.6, "compute")))
    assert "overlap" not in rules(diagnosis)["host_transfer_bound"].statement


@cases("stack, word")
def test_advice_is_in_the_words_of_the_stack(stack, word):
    advice = diagnose(profile(copies(0.5)), stack=stack).findings[0].advice or ""
    assert word in advice
    assert ("remat_policy" in advice) == (stack == "maxtext")


@pytest.mark.parametrize(("stack", "word"), [("maxtext", "profiler=xplane"), ("megatron", "--use-pytorch-profiler")])
def test_what_to_capture_is_in_the_words_of_the_stack(stack, word):
    diagnosis = diagnose(None, stack=stack)
    assert word in (diagnosis.findings[0].advice or "")
    assert word in (diagnosis.missing[0].capture or "")


@cases("chip, word")
def test_opaque_kernels_are_looked_at_with_what_the_chip_has(chip, word):
    finding = diagnose(profile(operation(0.9, opaque=True)), chip=load_chip(chip)).findings[0]
    assert word in (finding.advice or "")
    assert ("pallas_call" in (finding.advice or "")) == (chip == "v5e")


def test_names_of_operations_are_made_harmless():
    facts = profile(Operation(name="\x1b[31m@all\u202e", category="x", fraction=0.9, bound="compute"))
    assert diagnose(facts).findings[0].evidence[0].fact == "[31m@all"


operations = st.lists(
    st.builds(
        Operation, name=st.text(max_size=5), category=st.just("fusion"), fraction=st.floats(0, 0.2),
        bound=st.sampled_from(["compute", "hbm", "vmem", "host", "unknown"]), opaque=st.booleans(),
        host_copy=st.booleans(), collective=st.none() | st.sampled_from(["all-reduce", "all-gather"]),
        memory_utilisation=st.none() | st.floats(0, 1.5), roofline_efficiency=st.none() | st.floats(0, 2),
    ),
    max_size=5,
)  # fmt: skip


@given(operations, st.none() | st.floats(0, 1), st.booleans())
def test_any_profile_has_a_diagnosis(listed, duty, stated):
    facts = Profile(source="x", stated=stated, operations=tuple(listed), kpis=Kpis(duty_cycle=duty))
    diagnosis = diagnose(facts, chip=load_chip("v5e"))
    assert diagnosis.statement
    assert diagnosis.findings[0].kind is diagnosis.bottleneck
    shares = [finding.share for finding in diagnosis.findings if finding.share is not None]
    assert all(share >= 0 for share in shares)
