"""What holds of every replay: taking something away makes no step longer, and no answer is nothing or without end."""

import json
import math

import pytest

from asap.core.errors import InsufficientEvidenceError
from asap.traces.graph.build import build_graph
from asap.traces.load import load_trace
from asap.traces.summary import report_replay
from asap.traces.what_if.change import parse_change
from asap.traces.what_if.predict import predict_change

TRACES = (
    "ddp_a100_rank0of2",
    "ddp_resnet_ckpt_mi300x_rank0of8",
    "dlrm_8rank_v100",
    "dp_embedding_a100_rank3of8",
    "pax_fsdp4_a100_ranks_0_1",
    "qwen_0.5b_h100_and_mi300x_1gpu/h100.json.gz",
)
PROFILES = ("jax_cpu_plain", "openxla_xprof__tpu_inference_2", "AMD-AGI_TraceLens__mi300_gemm")


def assert_sound(path) -> None:
    report = report_replay(build_graph(load_trace([path])))
    for left in report.shortened_by:
        assert 0 < left.step_time_s <= report.step_time_s.replayed_s * (1 + 1e-9), left.change


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
