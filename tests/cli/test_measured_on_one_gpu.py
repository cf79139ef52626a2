"""Runs of two trainers on one H100, and what is predicted of them (docs/optimize.md)."""

import json

import pytest

from tests.cases import kept

TITAN = kept(__file__)["TITAN"]
MAXTEXT = kept(__file__)["MAXTEXT"]
EAGER, COMPILED, JAX = TITAN.format(compiled="false"), TITAN.format(compiled="true"), MAXTEXT.format(policy="full")
RUNS = [
    (EAGER, "microbatches=4 remat=full", 1.605, 47.1), (EAGER, "microbatches=4 remat=none", 1.278, 71.7),
    (EAGER, "microbatches=8 remat=none", 1.411, 50.3), (EAGER, "microbatches=2 remat=full", 1.525, 65.2),
    (EAGER, "microbatches=4 remat=minimal", 1.743, 52.8), (COMPILED, "microbatches=4 remat=none", 0.840, 50.0),
    (JAX, "microbatches=4 remat=full", 0.986, 41.9), (JAX, "microbatches=8 remat=full", 1.094, 40.1),
]  # fmt: skip
"""Configuration, plan, seconds of a step, GiB of HBM: reserved by PyTorch, or as XLA planned it."""


@pytest.fixture
def predicted(run_command, tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "home"))

    def predict(configuration, *plans):
        path = tmp_path / ("train.toml" if configuration.startswith("[") else "train.sh")
        path.write_text(configuration)
        named = [word for plan in plans for word in ("--plan", plan)]
        done = run_command("predict", str(path), "--hardware", "h100-1", *named, "--format", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    return predict


@pytest.mark.parametrize(("configuration", "plan", "seconds", "gibibytes"), RUNS)
def test_step_and_memory_of_a_run_on_one_h100(predicted, configuration, plan, seconds, gibibytes):
    (found,) = predicted(configuration, plan)["predictions"]
    assert found["step_time"]["low"] < seconds < found["step_time"]["high"]
    assert found["step_time"]["value"] == pytest.approx(seconds, rel=0.21)
    assert found["memory"]["total"]["value"] / 2**30 == pytest.approx(gibibytes, rel=0.05)


def test_what_ran_out_of_memory_on_one_h100_does_not_fit(predicted):
    (found,) = predicted(EAGER, "microbatches=2 remat=none")["predictions"]
    assert not found["memory"]["fits"]


def test_maxtext_without_a_policy_is_read_as_what_it_measured(predicted):
    said = predicted(MAXTEXT.format(policy="none"), "microbatches=4 remat=full")
    assert said["incumbent"]["plan"]["remat"] == "full"
