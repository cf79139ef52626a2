"""Other runs from the trace of one: what is asked about, what each class of kernels does, and what is printed."""

import json

import numpy as np
import pytest
from made_runs import Run as MadeRun
from made_runs import simulate, write

from asap.core.errors import AsapError
from asap.hardware import load_chip, resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.from_trace.chip import Rates, on_another_chip
from asap.prediction.from_trace.predict import predict_run, what_if
from asap.prediction.from_trace.run import Run, Schedule, changed_run
from asap.profiles import Operation
from asap.traces.analysis.iterations import step_time
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import Cause
from asap.traces.recording import load_trace
from asap.traces.what_if.apply import Changed
from asap.traces.what_if.change import NOT_FROM_A_TRACE, SETTINGS
from tests.cases import cases

MODEL = Architecture(layers=4, d_model=4096, d_ff=16384, heads=32, kv_heads=32, head_dim=128, vocab=32000)
WORK = Workload(global_batch=16, sequence_length=2048, framework="Megatron-LM", attention="flash")


@pytest.fixture(scope="module")
def traced():
    plan = Plan.parse("replica=2 remat=none microbatches=1")
    return Run(MODEL, WORK, resolve_hardware("a100-80gb", devices=2).slice, plan)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    ran = MadeRun(kernel=90_000, transfer=30_000, loading=0)
    return build_graph(load_trace([write(tmp_path_factory.mktemp("run"), simulate(ran))]))


def test_the_same_run_takes_what_was_measured(graph, traced):
    found = predict_run(graph, traced, traced)
    assert found.value == pytest.approx(found.measured, rel=0.01)
    assert found.modelled == 0
    assert found.traced + found.scaled == pytest.approx(1)


@pytest.mark.parametrize(("setting", "at_least", "at_most"), [("batch=32", 1.7, 2.05), ("layers=8", 1.6, 2.1)])
def test_twice_the_work_takes_twice_the_time_of_the_kernels(graph, traced, setting, at_least, at_most):
    found = predict_run(graph, traced, changed_run(traced, [setting]))
    assert at_least < found.value / found.measured < at_most
    assert found.low < found.value < found.high


def test_a_new_axis_is_modelled_and_widens_the_interval(graph, traced):
    tensor = predict_run(graph, traced, changed_run(traced, ["plan:model=2"]))
    same = predict_run(graph, traced, traced)
    assert tensor.modelled > 0
    assert tensor.high - tensor.low > same.high - same.low


def test_the_bubble_follows_the_schedule(graph, traced):
    staged = changed_run(traced, ["plan:stage=2", "microbatches=8"])
    times = {
        name: predict_run(graph, traced, changed_run(staged, [f"schedule={name}"])).value
        for name in ("gpipe", "1f1b", "interleaved:2", "zero-bubble", "dualpipe")
    }
    assert times["gpipe"] == times["1f1b"] > times["interleaved:2"] > times["zero-bubble"] > times["dualpipe"]
    fewer, more = (predict_run(graph, traced, changed_run(staged, [f"microbatches={n}"])) for n in (2, 16))
    assert fewer.modelled > more.modelled


def test_a_faster_chip_is_faster(graph, traced):
    faster, now = (predict_run(graph, traced, each) for each in (changed_run(traced, ["chip=h100"]), traced))
    assert faster.value < 0.8 * now.value


def test_what_is_asked_about(traced):
    wide = changed_run(traced, ["hidden=8192", "sequence=4096", "ranks=8", "schedule=interleaved:4"])
    assert (wide.architecture.d_model, wide.architecture.d_ff, wide.architecture.head_dim) == (8192, 32768, 256)
    assert (wide.workload.sequence_length, wide.workload.global_batch) == (4096, 16)
    assert (wide.plan.degree("replica"), wide.hardware.devices) == (8, 8)
    assert (wide.schedule, wide.plan.pipeline_repeats) == (Schedule.INTERLEAVED, 4)
    assert all(name in SETTINGS for name in NOT_FROM_A_TRACE)


@cases("setting")
def test_what_is_no_setting_is_one_line(traced, setting):
    with pytest.raises(AsapError) as refused:
        changed_run(traced, [setting])
    assert len(str(refused.value).splitlines()) == 1


def test_the_command(asap, tmp_path):
    run = str(write(tmp_path / "run", simulate(MadeRun())))
    config = tmp_path / "config.json"
    sizes = {"num_hidden_layers": 4, "hidden_size": 4096, "intermediate_size": 16384, "num_attention_heads": 32}
    config.write_text(json.dumps({"model_type": "llama", "vocab_size": 32000, **sizes}))
    said = ("--hardware", "a100-80gb-2", "--batch", "16", "--sequence", "2048")
    added = asap("experiments", "add", "mine", "--config", str(config), *said)
    assert added.code == 0, added.err
    arguments = ("trace", "what-if", run, "batch=32", "remove:dataloader", "--experiment", "mine", "--plan", "data=2")
    done = asap(*arguments, "--format", "json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["schema"], report["changes"]) == ("asap.trace/2", ["batch=32", "remove:dataloader"])
    assert (report["modules"], any("with_stack" in note for note in report["notes"])) == ({}, True)
    assert report["step_time_s"]["value"] < 2 * report["measured_s"]
    assert sum(report["shares"].values()) == pytest.approx(1)
    assert report["step_time_s"]["low"] < report["step_time_s"]["value"] < report["step_time_s"]["high"]


def test_without_the_model_another_chip_is_predicted_by_rooflines_of_what_the_trace_states(graph):
    """Products at the roof follow it; of what takes twice the time of the roof, the middle of both views is taken."""
    now, then = chips = [Rates(load_chip(name), 2) for name in ("a100-80gb", "h100")]
    (slow, fast) = (each.chip.peak_flops["bf16"] * each.sustained.matmul_efficiency for each in chips)
    whole, own = Changed(graph, np.zeros(len(graph.edges), dtype=bool)), graph.edges.cause == Cause.DURATION
    rank = graph.trace.ranks[0]
    taken = np.bincount(rank.operations.name, rank.operations.end - rank.operations.start) * 1e-9
    count = np.bincount(rank.operations.name)
    for roof, factor in ((1.0, slow / fast), (0.5, (slow / fast * (1 + slow / fast) / 2) ** 0.5)):
        operations = [
            Operation(name=name, category="matmul", fraction=0.1, occurrences=n, flops=roof * seconds * slow)
            for name, seconds, n in zip(rank.names, taken, count, strict=False) if n
        ]  # fmt: skip
        changed, doubt, note = on_another_chip(whole, operations, now, then)
        assert changed.graph.edges.weight[own].sum() == pytest.approx(factor * graph.edges.weight[own].sum(), rel=0.01)
        assert doubt > 0
        assert "no shapes for 0" in note
    same, doubt, _ = on_another_chip(whole, operations, now, now)
    assert (same.graph.edges.weight.tolist(), doubt) == (graph.edges.weight.tolist(), 0)


def test_a_program_that_ran_on_two_chips_is_predicted_from_either(real):
    paths = {chip: real(f"qwen_0.5b_h100_and_mi300x_1gpu/{chip}.json.gz") for chip in ("mi300x", "h100")}
    graphs = {chip: build_graph(load_trace([path])) for chip, path in paths.items()}
    for chip, other in zip(paths, reversed(paths), strict=True):
        found = what_if(graphs[chip], [f"chip={other}"], recording=paths[chip])
        truth = step_time(graphs[other]).measured_s
        assert found.value == pytest.approx(truth, rel=0.03)
        assert found.low < truth < found.high < 1.5 * truth


def test_kernels_of_a_compiled_program_move_to_another_chip_as_it_says_of_them(real_profile):
    """Elementwise operations go with the bandwidth of HBM: 5.3 TB/s of MI300X, 3.35 of H100."""
    path = real_profile("AMD-AGI_TraceLens__mi300_elementwise")
    graph = build_graph(load_trace([path]))
    found = what_if(graph, ["chip=h100"], recording=path)
    own = graph.edges.cause == Cause.DURATION
    then = found.graph.edges.weight[found.graph.edges.cause == Cause.DURATION].sum() / graph.edges.weight[own].sum()
    assert then == pytest.approx(5.3 / 3.35, rel=0.1)
    assert found.low < found.value < found.high


def test_without_shapes_another_chip_is_refused_with_their_share(asap, tmp_path):
    done = asap("trace", "what-if", str(write(tmp_path / "run", simulate(MadeRun()))), "chip=h100")
    assert (done.code, "whose shapes the trace lacks" in done.err, "%" in done.err) == (5, True, True)
