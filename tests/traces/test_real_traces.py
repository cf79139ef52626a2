"""Traces of real runs, where they are at hand: ``ASAP_TEST_TRACES`` or ``../shared/traces``.

Each class of edges is left out once; the error that it then makes is known and has to stay that large.
"""

from itertools import pairwise

import numpy as np
import pytest

from asap.traces.analysis.breakdown import breakdown, rank_times
from asap.traces.analysis.iterations import device_iterations, step_time, step_times
from asap.traces.analysis.quality import GOOD, unexplained
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import Cause
from asap.traces.recording import load_trace
from asap.traces.what_if.apply import apply
from asap.traces.what_if.change import parse_change
from asap.traces.what_if.predict import predict_change

pytestmark = pytest.mark.slow

DLRM, PAX, EMBEDDING = "dlrm_8rank_v100", "pax_fsdp4_a100_ranks_0_1", "dp_embedding_a100_rank3of8"
RESNET = "resnet50_1gpu_v100_workers_0_and_4_pairA"
HOST_OFFLOAD = "openxla_xprof__tpu_inference_2"
SINGLE_RANKS = (
    "ddp_a100_rank0of2", "ddp_resnet_ckpt_mi300x_rank0of8", EMBEDDING,
    *(f"{RESNET}/workers{count}.json.gz" for count in (0, 4)),
    *(f"qwen_0.5b_h100_and_mi300x_1gpu/{chip}.json.gz" for chip in ("h100", "mi300x")),
    *(f"cuda_event_sync_micro_a100/event_sync{kind}.json.gz" for kind in ("", "_multi_stream")),
)  # fmt: skip


def graph_of(path, *without):
    return build_graph(load_trace([path]), without)


def worst(graph):
    """Largest error of an iteration of any rank, on the device."""
    return max(abs(times.error) for rank, nodes in _ranks(graph) for times in device_iterations(graph, rank, nodes))


def _ranks(graph):
    return zip(graph.trace.ranks, graph.nodes, strict=True)


def test_all_ranks_of_dlrm(real):
    graph = graph_of(real(DLRM))
    steps = [times for _, nodes in _ranks(graph) for times in step_times(graph, nodes)]
    known = [14455, 19901, 13017, 19313, 17979, 17797, 13091, 12509]
    assert [round(times.measured_s * 1e6) for times in steps] == known
    assert max(abs(times.error) for times in steps) <= 0.01
    assert worst(graph) <= 0.01
    times = (graph.trace.ranks, rank_times(graph, graph.measured), rank_times(graph, graph.replayed))
    for rank, measured, replayed in zip(*times, strict=True):
        truth, found = breakdown(rank, measured), breakdown(rank, replayed)
        allowed = max(1e-4, 0.05 * truth.exposed_communication_s)
        assert found.exposed_communication_s == pytest.approx(truth.exposed_communication_s, abs=allowed)
        assert found.waiting_s == pytest.approx(truth.waiting_s, abs=allowed)


def test_a_collective_takes_one_time_on_all_ranks(real):
    graph = graph_of(real(DLRM))
    ends = [graph.replayed[nodes.operation_end] for nodes in graph.nodes]
    assert sum(each.collectives for each in graph.trace.matched) == 8
    for each in graph.trace.matched:
        assert np.ptp(each.of(ends), axis=0).max() == 0


@pytest.mark.parametrize(("name", "causes", "error"), [
    (DLRM, {Cause.HOST}, 0.60), (DLRM, {Cause.LAUNCH}, 0.45), (DLRM, {Cause.BLOCKED}, 0.08),
    (PAX, {Cause.STREAM}, 0.60), (PAX, {Cause.WAIT, Cause.INFERRED}, 0.02), (EMBEDDING, {Cause.INFERRED}, 0.04),
    (EMBEDDING, {Cause.WAIT, Cause.INFERRED}, 0.05), (EMBEDDING, {Cause.BLOCKED}, 0.12),
    (EMBEDDING, {Cause.DURATION}, 0.90),
], ids=str)  # fmt: skip
def test_without_a_cause_the_replay_is_wrong(real, name, causes, error):
    path = real(name)
    assert worst(graph_of(path)) <= 0.01 < error <= worst(graph_of(path, *causes))


def test_each_execution_of_pax_and_its_straggler(real):
    graph = graph_of(real(PAX))
    measured = {}
    for rank, nodes in _ranks(graph):
        found = device_iterations(graph, rank, nodes)
        measured[rank.rank] = [round(1e3 * times.measured_s, 2) for times in found]
        assert max(abs(times.error) for times in found) <= 0.015
    assert measured == {0: [143.04, 127.31, 127.46, 126.86], 1: [140.17, 126.06, 125.55, 126.35]}


@pytest.mark.parametrize("change", ["overlap:communication", "remove:communication"])
def test_what_starts_and_ends_transfers_matters(real, change):
    """Serialised communication would err by 3 to 18 %."""
    graph = graph_of(real(PAX))
    changed = step_time(apply(graph, [parse_change(change)]).graph)
    assert abs(changed.replayed_s / changed.measured_s - 1) > 0.02


@pytest.mark.parametrize("name", SINGLE_RANKS)
def test_single_ranks_replay_or_are_flagged(real, name):
    graph = graph_of(real(name))
    assert worst(graph) <= 0.02 or max(unexplained(graph)) > GOOD


def test_data_loading_by_workers_is_foretold(real):
    """Trained on what was measured with none, checked on what was measured with four."""
    path = real(RESNET)
    found = predict_change(graph_of(path / "workers0.json.gz"), [parse_change("remove:dataloader")])
    truth = step_time(graph_of(path / "workers4.json.gz")).measured_s
    assert found.value == pytest.approx(truth, rel=0.08)
    assert found.low <= truth <= found.high
    assert found.measured / truth > 1.2


def test_host_offload_on_v6e_without_copying_the_waits(real_profile):
    path = real_profile(HOST_OFFLOAD)
    graph = graph_of(path)
    found = step_time(graph)
    assert found.replayed_s == pytest.approx(found.measured_s, rel=0.04)
    assert found.replayed_s != pytest.approx(found.measured_s, rel=0.02)
    assert abs(step_time(graph_of(path, Cause.STREAM)).error) > 0.4


@pytest.mark.parametrize("name", ["AMD-AGI_TraceLens__mi300_gemm", "AMD-AGI_TraceLens__mi300_elementwise"])
def test_gpu_profiles_of_jax(real_profile, name):
    assert worst(graph_of(real_profile(name))) <= 0.007


def test_times_are_whole_nanoseconds_in_order(real):
    for rank in load_trace([real(EMBEDDING)]).ranks:
        assert rank.operations.start.dtype == np.int64
        assert all(one <= other for one, other in pairwise(rank.operations.start.tolist()))
        assert rank.first == 0
