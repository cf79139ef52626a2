"""A measured step without a profile: stated, or read from a training log."""

import pytest

from asap.core.errors import ConfigError, UsageError
from asap.experiments import Experiment
from asap.experiments.create import Statement, amend, read_measured_step
from asap.models import Workload
from tests.cases import cases

LINE = "I0804 metrics.py:196] completed step: {n}, seconds: {s}, TFLOP/s/device: 9.1, Tokens/s/device: {t}, loss: 9"


@pytest.fixture
def log(tmp_path):
    def write(times: list[float], line: str = LINE, tokens: float = 8192) -> str:
        path = tmp_path / "run.log"
        path.write_text("\n".join(line.format(n=n, s=s, t=tokens / s) for n, s in enumerate(times)))
        return str(path)

    return write


@cases("said, seconds")
def test_a_stated_time(said, seconds):
    assert read_measured_step(said, Experiment(id="x")).measured.seconds == pytest.approx(seconds)


def test_the_steady_steps_of_a_log(log):
    found = read_measured_step(log([41.2, 3.1, 2.30, 2.32, 2.31, 2.29, 2.33]), Experiment(id="x")).measured
    assert found.seconds == pytest.approx(2.31)
    assert (found.least, found.most, found.steps, found.left_out) == (2.29, 2.33, 5, 2)
    assert found.tokens_per_device == pytest.approx(8192, rel=0.01)
    assert str(found) == "2.31 s, the median of 5 steady steps (2.29 s to 2.33 s; 2 of the warm-up left out)"


TITAN = "step: {n}  loss:  8.1  memory: 62.1GiB(77%)  tps: {t:,.0f}  tflops: 350.1"


def test_a_rate_that_the_record_does_not_make_is_named(log):
    known = Experiment(id="x", workload=Workload(global_batch=16, sequence_length=4096))
    for tokens, said in ((8192, 0), (16384, 1)):
        notes = amend(known, Statement(hardware="h100-8", step_time=log([9.0, 2.0, 2.0, 2.0], tokens=tokens))).notes
        assert sum("contradicts the record" in note for note in notes) == said


@cases("stated, named")
def test_what_a_log_of_another_run_measured_is_not_taken(stated, named):
    own = {"global_batch": 8, "sequence_length": 4096, "hardware": "h100-1"} | stated
    found = amend(Experiment(id="x"), Statement(step_time="tests/data/logs/torchtitan_h100.log", **own))
    assert (found.measured is None) == bool(named)
    assert any("another run" in note and named in note for note in found.notes) == bool(named)


def test_a_log_that_counts_tokens_waits_for_the_record_that_has_them(log):
    stated = Statement(hardware="h100-8", step_time=log([9.0, 2.0, 2.0, 2.0], TITAN, 8192))
    before = amend(Experiment(id="x"), stated)
    assert (before.measured, before.hardware.devices) == (None, 8)
    workload = Workload(global_batch=16, sequence_length=4096, framework="torchtitan")
    assert amend(before.model_copy(update={"workload": workload}), stated).measured.seconds == pytest.approx(2.0)
    with pytest.raises(ConfigError, match="tokens of its step are not known"):
        amend(Experiment(id="x", workload=Workload(framework="torchtitan")), stated)


@cases("text, said")
def test_a_log_without_steady_steps(log, text, said):
    with pytest.raises(ConfigError, match=said):
        read_measured_step(log([1.0], text), Experiment(id="x"))


@pytest.mark.parametrize("said", ["soon", "0s", "-2s", "nan", "", "2.31 h", "9" * 40])
def test_what_is_no_time(said):
    with pytest.raises(UsageError):
        read_measured_step(said, Experiment(id="x"))
