"""A trace as a profile, and its replay as evidence for the diagnosis."""

import pytest
from made_runs import HOST, Rank, Run, simulate, unexplained, write
from megatron import Job
from megatron import simulate as pipeline
from test_thunks import execution, table

from asap.diagnosis import Bottleneck
from asap.experiments import Experiment, ExperimentStore
from asap.study.open_study import open_study
from asap.traces.recording import read_graph, read_recording
from asap.traces.summary import report_replay
from tests.cases import cases

RUN = Run(layers=6, steps=5, loading=50, slow=(1.0, 1.5), overlaps=False)


@pytest.fixture
def study(tmp_path):
    """Open what a run made to measure recorded."""

    def opened(run):
        folder = write(tmp_path / f"{abs(hash(run))}", simulate(run))
        return open_study(str(folder), ExperimentStore(tmp_path / "experiments"))

    return opened


def causes(diagnosis):
    return {cause.name: cause for cause in diagnosis.causes}


def test_times_and_shares_are_those_of_the_trace(study):
    profile = study(RUN).profile
    kernel = max(RUN.slow) * RUN.kernel * 1e-6
    assert profile.extent == "step"
    assert profile.kpis.step_time_s == pytest.approx(RUN.layers * (kernel + 1e-6 * RUN.transfer), rel=0.1)
    product = next(op for op in profile.operations if op.category == "matmul")
    assert (product.bound, product.occurrences) == ("compute", RUN.layers)
    assert profile.kpis.duty_cycle + profile.kpis.idle + profile.kpis.input == pytest.approx(1)
    assert sum(op.fraction for op in profile.operations) == pytest.approx(profile.kpis.duty_cycle)


def test_hidden_communication_takes_no_share(study):
    hidden = Run(layers=6, steps=5, loading=0, kernel=900, transfer=300, slow=(1.0, 1.0))
    exposed = Run(layers=6, steps=5, loading=0, kernel=900, transfer=300, slow=(1.0, 1.0), overlaps=False)
    shares = [study(run).profile.kpis.communication for run in (hidden, exposed)]
    assert shares[0] < 0.1
    assert shares[1] == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(("run", "bottleneck"), [
    (Run(layers=6, kernel=900, loading=0, transfer=100), Bottleneck.COMPUTE),
    (Run(layers=6, kernel=200, loading=0, transfer=900, overlaps=False), Bottleneck.COMMUNICATION),
    (Run(layers=6, kernel=100, loading=9000), Bottleneck.HOST),
])  # fmt: skip
def test_what_holds_back_leads_the_critical_path(study, run, bottleneck):
    diagnosis = study(run).diagnosis
    assert diagnosis.bottleneck is bottleneck
    path = {each.fact: each.quantity for each in diagnosis.findings[0].evidence}["share of the critical path"]
    assert path.value > 0.5
    assert "replay" in path.source
    assert any("critical path" in sentence for sentence in diagnosis.correlation)


def test_waiting_for_a_late_rank_is_a_cause_of_its_own(study):
    late = causes(study(Run(layers=6, loading=0, slow=(1.0, 3.0), overlaps=False)).diagnosis)["late_ranks"]
    assert "rank 1 comes last" in late.statement
    assert late.share == pytest.approx(2 / (3 + 2 / 3) / 2, abs=0.05)
    assert "late_ranks" not in causes(study(Run(layers=6, loading=0, overlaps=False)).diagnosis)


def test_the_bubble_of_a_pipeline_is_named(tmp_path):
    folder = write(tmp_path / "run", pipeline(Job(tp=1, dp=1, pp=4, microbatches=4))[0])
    bubble = causes(open_study(str(folder), ExperimentStore(tmp_path)).diagnosis)["pipeline_bubble"]
    assert bubble.share == pytest.approx(3 / 7, abs=0.1)
    assert "bubble" in bubble.statement


def test_a_trace_that_is_not_explained_gives_no_evidence(tmp_path):
    folder = write(tmp_path / "run", unexplained())
    study = open_study(str(folder), ExperimentStore(tmp_path))
    assert any("unexplained" in warning for warning in study.profile.warnings)
    assert not any("critical path" in sentence for sentence in study.diagnosis.correlation)


def test_the_start_up_of_a_job_is_left_out(tmp_path):
    runs = [execution(0, slow=40.0), *(execution(number) for number in (1, 2, 3))]
    (tmp_path / "rank0_thunks.csv").write_text(table([row for run in runs for row in run]))
    profile, replay = read_recording(tmp_path), report_replay(read_graph(tmp_path))
    assert max(profile.kpis.step_time_max_s, *(op.time_s for op in profile.operations)) < 1e-3
    assert replay.recorded_steps == 3
    assert all("counted from step 2 of 4" in notes[-1] for notes in (profile.warnings, replay.notes))


def test_an_experiment_keeps_its_trace_as_its_profile(tmp_path):
    store = ExperimentStore(tmp_path / "experiments")
    folder = write(tmp_path / "run", simulate(RUN))
    store.add(Experiment(id="mine", profile_path=str(folder)))
    study = open_study("mine", store)
    assert study.replay.step_time_s.replayed_s == pytest.approx(study.profile.kpis.step_time_s, rel=0.02)
    assert read_graph(folder) is read_graph(folder)


@pytest.mark.parametrize(("name", "trains"), [("mse_backward_cuda_kernel", True), ("flash_fwd_kernel", False)])
def test_a_trace_without_a_backward_pass_says_that_it_may_not_be_training(tmp_path, name, trains):
    named = [each | ({"name": name} if each["cat"] == "kernel" else {}) for each in simulate(Run(slow=(1.0,)))[0]]
    found = read_recording(write(tmp_path / "run", [named]))
    assert any("may not be training" in warning for warning in found.warnings) is not trains


@pytest.mark.parametrize(("until", "waits_for"), [(5390, "input"), (320, "idle")])
def test_a_pause_of_the_device_inside_of_a_blocking_copy_is_synchronisation(tmp_path, until, waits_for):
    rank = Rank(1.0)
    rank.ran(("cudaLaunchKernel", 0, 5), "kernel", "gemm", 7, 10, 290)
    rank.ran(("cudaLaunchKernel", 10, 5), "kernel", "gelu", 8, 5300, 100)
    rank.ran(("cudaMemcpyAsync", 20, until - 20), "gpu_memcpy", "Memcpy DtoH", 9, until - 12, 10)
    profile = read_recording(write(tmp_path / "run", [rank.events]))
    assert getattr(profile.kpis, waits_for) > 0.9
    assert (profile.host.get("synchronisation", 0.0) > 0.9) is (waits_for == "input")


def test_the_generic_kernel_of_nccl_is_the_collective_that_pytorch_annotates(tmp_path):
    rank = Rank(1.0)
    rank.add("cpu_op", "nccl:_reduce_scatter_base", HOST, 0, 10)
    rank.ran(("cudaLaunchKernel", 2, 5), "kernel", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t()", 20, 10, 290)
    (collective,) = read_recording(write(tmp_path / "run", [rank.events])).kpis.collectives
    assert collective.kind == "reduce-scatter"


@pytest.mark.parametrize(("before", "said"), [(9000, True), (9, False)])
def test_what_the_host_does_before_the_first_operation_is_no_part_of_the_window(tmp_path, before, said):
    rank = Rank(1.0)
    rank.add("cuda_runtime", "cudaMalloc", HOST, 0, before)
    rank.ran(("cudaLaunchKernel", before, 5), "kernel", "gemm", 7, before + 110, 290)
    rank.add("cuda_runtime", "cudaDeviceSynchronize", HOST, before + 6, 400)
    found = read_recording(write(tmp_path / "run", [rank.events]))
    assert (found.host, any("first operation (allocation" in each for each in found.warnings)) == ({}, said)


@cases("calls, launched, kind")
def test_what_the_host_does_between_two_kernels_is_named(calls, launched, kind, tmp_path):
    rank = Rank(1.0)
    rank.ran(("cudaLaunchKernel", 0, 5), "kernel", "gemm", 7, 10, 100)
    for category, name, start, length in calls:
        rank.add(category, name, HOST, start, length)
    rank.ran(("cudaLaunchKernel", launched, 5), "kernel", "gemm", 7, launched + 10, 100)
    assert next(iter(read_recording(write(tmp_path / "run", [rank.events])).host)) == kind
