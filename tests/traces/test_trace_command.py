"""``asap trace``, as a user and as another program meets it."""

import gzip
import json

import pytest
from made_runs import Run, simulate, write

from tests.cases import cases


@pytest.fixture
def run(tmp_path):
    """Matrix products are launched by one of two modules, which are called in turn."""
    ranks = simulate(Run(slow=(1.0, 1.5)))
    for events in ranks:
        products = {
            each["args"]["correlation"] for each in events if each["cat"] == "kernel" and "gemm" in each["name"]
        }
        calls = [each for each in events if each["cat"] == "cuda_runtime" and each["args"]["correlation"] in products]
        names = [f"nn.Module: Linear_{number % 2}" for number in range(len(calls))]
        events += [call | {"cat": "python_function", "name": name} for call, name in zip(calls, names, strict=True)]
    return str(write(tmp_path / "run", ranks))


def answer(asap, *arguments):
    done = asap("trace", *arguments, "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_load_says_what_a_trace_holds(asap, run):
    printed = asap("trace", "load", run)
    assert (printed.code, printed.err) == (0, "")
    assert all(words in printed.out for words in ("NVIDIA A100", "quality: good"))
    report = answer(asap, "load", run)
    assert report["schema"] == "asap.trace/2"
    ranks = [(rank["rank"], rank["world_size"], len(rank["steps"])) for rank in report["ranks"]]
    assert ranks == [(0, 2, 3), (1, 2, 3)]


def test_replay_in_json(asap, run):
    report = answer(asap, "replay", run)
    assert (report["schema"], report["quality"]["verdict"]) == ("asap.trace/2", "good")
    for rank in report["ranks"]:
        for time in (*rank["steps"], *rank["device_iterations"]):
            assert time["replayed_s"] == pytest.approx(time["measured_s"], rel=0.01)
        parts = rank["breakdown"]
        names = ("exposed_compute_s", "exposed_communication_s", "overlap_s", "host_s", "idle_s")
        assert sum(parts[name] for name in names) == pytest.approx(parts["window_s"])
        assert parts["waiting_s"] <= parts["exposed_communication_s"]
        assert 0 <= rank["unexplained"] < 0.1
    assert sum(part["share"] for part in report["critical_path"]) == pytest.approx(1)
    assert report["stragglers"][0]["rank"] == 1
    assert any(each["change"] == "remove:compute" for each in report["shortened_by"])
    microbatch, layer, *modules = report["model_parts"]
    assert [(each["part"], each["count"]) for each in (microbatch, layer)] == [("microbatch", 2), ("layer", 2)]
    assert layer["longest_s"] == pytest.approx(layer["time_s"] / 2) == pytest.approx(2 * 375e-6)
    assert {"Linear", "no module"} == {each["name"] for each in modules}


def test_replay_as_text(asap, run):
    printed = asap("trace", "replay", run)
    assert printed.code == 0
    for word in ("critical path", "of it waiting", "host-bound", "rank 1 came last", "part of the model"):
        assert word in printed.out


def test_what_if_in_json_and_text(asap, run):
    report = answer(asap, "what-if", run, "scale:matmul=0.5", "remove:dataloader")
    found = report["step_time_s"]
    assert found["low"] <= found["value"] < min(found["high"], report["measured_s"])
    assert sum(report["shares"].values()) == pytest.approx(1)
    assert report["shares"]["modelled"] == 0
    now, after = report["modules"]["Linear"]
    assert after == pytest.approx(now / 2, rel=0.01)
    printed = asap("trace", "what-if", run, "scale:matmul=0.5")
    for word in ("interval", "speed-up", "device that works longest", "critical path after"):
        assert word in printed.out


@cases("arguments, code, message")
def test_bad_input_is_one_line(asap, run, tmp_path, arguments, code, message):
    files = {name: tmp_path / name for name in ("empty", "text", "cut.json.gz", "cpu.json")}
    files["empty"].mkdir()
    files["text"].write_text("hello")
    files["cut.json.gz"].write_bytes(gzip.compress(b'{"traceEvents": [{"ph": "X"}, {"ph"')[:-3])
    files["cpu.json"].write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "mm", "ts": 1, "dur": 2}]}')
    places = {name.partition(".")[0]: path for name, path in files.items()} | {"run": run}
    done = asap("trace", *(argument.format(**places) for argument in arguments))
    assert done.code == code
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "Traceback" not in done.err
