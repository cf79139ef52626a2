"""What holds of every recording: taking something away makes no step longer, the work of the device bounds it from
below, steps are those that were marked, and KPIs, operations, diagnosis and replay say the same."""

import json
import math
from statistics import fmean, median

import pytest
from made_runs import Run, simulate, write
from megatron import Job
from megatron import simulate as pipeline

from asap.core.errors import InsufficientEvidenceError
from asap.diagnosis import Bottleneck, diagnose
from asap.profiles.xplane.columns import covered
from asap.traces.analysis.iterations import step_of_operations
from asap.traces.analysis.report import QualityVerdict
from asap.traces.graph.build import build_graph
from asap.traces.recording import load_trace, read_graph, read_recording
from asap.traces.summary import report_replay
from asap.traces.trace import NS, OperationKind
from asap.traces.what_if.change import parse_change
from asap.traces.what_if.predict import predict_change

TRACES = (
    "ddp_a100_rank0of2", "ddp_resnet_ckpt_mi300x_rank0of8", "dlrm_8rank_v100", "dp_embedding_a100_rank3of8",
    "pax_fsdp4_a100_ranks_0_1", "qwen_0.5b_h100_and_mi300x_1gpu/h100.json.gz",
)  # fmt: skip
GENERATED = {
    "compute": lambda: simulate(Run(steps=4, loading=0)),
    "host": lambda: simulate(Run(steps=4, kernel=60, loading=9000)),
    "exposed": lambda: simulate(Run(steps=4, loading=0, transfer=900, overlaps=False)),
    "late": lambda: simulate(Run(steps=4, loading=0, slow=(1.0, 3.0), overlaps=False)),
    "pipeline": lambda: pipeline(Job(tp=1, dp=2, pp=2, microbatches=4))[0],
}
PROFILES = ("jax_cpu_plain", "openxla_xprof__tpu_inference_2", "AMD-AGI_TraceLens__mi300_gemm")


AGREES = 0.02
LEAVES_THE_WORK = ("remove:host", "remove:dataloader", "remove:communication")


def assert_sound(path) -> None:
    graph = build_graph(load_trace([path]))
    report = report_replay(graph)
    for left in report.shortened_by:
        assert 0 < left.step_time_s <= report.step_time_s.replayed_s * (1 + 1e-9), left.change
        if left.change in LEAVES_THE_WORK and report.quality.verdict is QualityVerdict.GOOD:
            assert left.step_time_s >= (1 - AGREES) * max(map(work_of_a_step, graph.trace.ranks)), left.change
    for rank, said in zip(graph.trace.ranks, report.ranks, strict=True):
        assert [step.label for step in said.steps] == [step.label for step in rank.steps] or rank.executions
    if report.quality.verdict is QualityVerdict.REFUSED:
        with pytest.raises(InsufficientEvidenceError, match="unexplained"):
            predict_change(graph, [parse_change("scale:compute=0.5")])


def work_of_a_step(rank) -> float:
    """Seconds that the busiest stream works in the median step, whatever waits for what."""
    step, ran = step_of_operations(rank), rank.operations
    ends = ran.end if rank.durations is None else ran.start + rank.durations
    rows = [
        (ran.kind != OperationKind.COMMUNICATION) & (step == number) & (ran.lane == lane)
        for number in range(max(len(rank.steps), 1))
        for lane in set(ran.lane.tolist())
    ]
    lanes = len(set(ran.lane.tolist()))
    busy = [covered(ran.start[each], ends[each]) for each in rows]
    return NS * median(max(busy[first : first + lanes]) for first in range(0, len(busy), lanes))


def assert_agreed(path) -> None:
    """KPIs, operations, causes and bottleneck of the profile against what the report measures of each rank."""
    profile, report = read_recording(path), report_replay(read_graph(path))
    diagnosis, kpis = diagnose(profile, replay=report), profile.kpis
    shares = {
        name: fmean(getattr(one, name) / one.window_s for rank in report.ranks if (one := rank.measured_breakdown))
        for name in PARTS
    }
    work = shares["exposed_compute_s"] + shares["overlap_s"] + shares["exposed_communication_s"]
    if kpis.step_time_s:
        assert kpis.step_time_s == pytest.approx(report.step_time_s.measured_s, rel=AGREES)
    assert kpis.communication == pytest.approx(shares["exposed_communication_s"], abs=AGREES)
    assert kpis.input == pytest.approx(shares["host_s"], abs=AGREES)
    assert sum(op.fraction for op in profile.operations) == pytest.approx(work, abs=AGREES)
    assert kpis.duty_cycle == pytest.approx(work, abs=AGREES)
    assert sum(profile.host.values()) <= kpis.input + AGREES or "evaluation" in profile.host
    for cause in diagnosis.causes:
        assert 0 < cause.gain <= cause.share * (1 + 1e-9) <= 1 + 1e-9
    found = {finding.kind for finding in diagnosis.findings}
    if report.quality.verdict is QualityVerdict.GOOD:
        for kinds, categories in ON_THE_PATH.items():
            if sum(report.critical_path_shares.get(category, 0.0) for category in categories) > 0.5:
                assert found & set(kinds), categories


PARTS = ("exposed_compute_s", "exposed_communication_s", "overlap_s", "host_s")
ON_THE_PATH = {
    (Bottleneck.COMPUTE, Bottleneck.HBM, Bottleneck.OPAQUE): ("compute",),
    (Bottleneck.COMMUNICATION, Bottleneck.HBM): ("communication",),
    (Bottleneck.HOST, Bottleneck.IDLE): ("host", "launch"),
}


@pytest.mark.parametrize("name", GENERATED)
def test_generated(tmp_path, name):
    folder = write(tmp_path / name, GENERATED[name]())
    assert_sound(folder)
    assert_agreed(folder)


@pytest.mark.parametrize("name", [name for name in TRACES if not name.startswith("pax")])
def test_nothing_contradicts(real, name):
    assert_agreed(real(name))


@pytest.mark.parametrize("name", TRACES)
def test_traces(real, name):
    assert_sound(real(name))


@pytest.mark.parametrize("name", PROFILES)
def test_profiles(real_profile, name):
    assert_sound(real_profile(name))


def kernels(folder):
    """Two kernels, launched before the trace began."""
    file = folder / "rank0.json"
    events = [
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start, "dur": 50, "args": {"stream": 7}}
        for start in (0, 50)
    ]
    file.write_text(json.dumps({"traceEvents": events}))
    return build_graph(load_trace([file]))


def test_a_change_that_leaves_nothing_is_refused(tmp_path):
    graph = kernels(tmp_path)
    with pytest.raises(InsufficientEvidenceError, match="nothing of the step is left"):
        predict_change(graph, [parse_change("remove:compute")])
    assert "remove:compute" not in {left.change for left in report_replay(graph).shortened_by}
    found = predict_change(graph, [parse_change("scale:compute=0.5")])
    assert found.value == pytest.approx(50e-6)
    assert math.isfinite(found.measured / found.value)
