"""A training log on the command line, and the call of a script that is caught instead of run."""

import json
import os
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.cases import cases, kept

KEPT = kept(__file__)

FORMS = tomllib.loads((Path(__file__).parents[1] / "data" / "logs" / "forms.toml").read_text(encoding="utf-8"))["log"]
TEXTS = {form["name"]: form["text"] for form in FORMS}


@pytest.fixture
def log(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "train.log"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_a_log_is_analysed_with_what_it_measured(asap, log):
    done = asap("analyze", log(TEXTS["trainer with DeepSpeed, progress bars"]), "--hardware", "a100-80gb-8",
                "--sequence", "2048", "--format", "json")  # fmt: skip
    assert done.code == 0
    found = json.loads(done.out)
    assert found["kpis"]["step_time_s"] == pytest.approx(2.5, rel=0.01)
    assert found["experiment"]["model"]["layers"] == 22


def test_a_step_far_from_the_model_is_the_finding(asap, log):
    done = asap("analyze", log(TEXTS["torchtitan, far slower than the model"]), "--hardware", "h100-32")
    expected = ["times slower than expected", "network between nodes", "26.5 GiB"]
    assert [said for said in (*expected, "Well set") if said in done.out] == expected


def test_what_ran_out_of_memory_does_not_fit(asap, log):
    text = TEXTS["torchtitan 2025, configuration, colours, out of memory"]
    done = asap("analyze", log(text), "--format", "json")
    found = json.loads(done.out)
    assert found["incumbent"]["memory"]["fits"] is False
    assert "ran out of device memory: needs at least 81.9 GiB of 79.2 GiB" in " ".join(found["warnings"])


def test_a_log_is_kept_as_an_experiment(asap, log):
    path = log(TEXTS["megatron-lm 2025"])
    assert asap("experiments", "add", "mine", "--config", path, "--hardware", "h100-16").code == 0
    shown = json.loads(asap("experiments", "show", "mine", "--format", "json").out)
    assert shown["measured"]["seconds"] == pytest.approx(2.105)
    assert shown["observed"]["ending"]["kind"] == "running"


@pytest.mark.process
def test_the_call_of_a_script_is_caught_and_not_made(asap, tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text(KEPT["SCRIPT"], encoding="utf-8")
    done = asap("resolve", "--yes", "--hardware", "h100-16", "--", "bash", "train.sh")
    assert done.code == 0, done.err
    assert all(said in done.out for said in ("caught: torchrun", "replica=4 model=4", "NCCL_ALGO=Ring"))
    assert "2 calls start training, and the last is read; the one before it says 1024" in done.err
    assert "0123456789abcdef" not in done.out + done.err
    assert (Path("ran").exists(), [name for name in os.listdir() if "resolve" in name]) == (True, [])


@pytest.mark.process
@cases("script")
def test_what_a_launcher_is_given_is_read_and_nothing_is_started(asap, tmp_path, monkeypatch, script):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUN", KEPT["RUN"])
    pod = {"containers": [{"name": "a", "image": "b", "command": KEPT["RUN"].split()}]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}}}
    Path("job.yaml").write_text(yaml.safe_dump(job), encoding="utf-8")
    for name, text in KEPT["INSTALLED"].items():
        (program := tmp_path / name).write_text(text)
        program.chmod(0o700)
    Path("train.sh").write_text(script, encoding="utf-8")
    done = asap("resolve", "--yes", "--hardware", "h100-16", "--", "bash", "train.sh")
    assert (done.code, Path("ran").exists()) == (0, False), done.err
    assert ("replica=4 model=4" in done.out, "NCCL_ALGO=Tree" in done.out) == (True, False)


@pytest.mark.parametrize("environment", [{"CI": "true"}, {}], ids=["in CI", "without a terminal"])
def test_nothing_is_run_without_consent(asap, tmp_path, monkeypatch, environment):
    monkeypatch.delenv("CI", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "train.sh").write_text("touch ran\n", encoding="utf-8")
    done = asap("resolve", *(["--yes"] if environment else []), "--", "bash", str(tmp_path / "train.sh"))
    assert done.code == 2
    assert not (tmp_path / "ran").exists()


@pytest.mark.process
@cases("command, code, said")
def test_a_command_that_starts_nothing_is_said_to(asap, monkeypatch, command, code, said):
    monkeypatch.delenv("CI", raising=False)
    done = asap("resolve", "--yes", "--time-limit", "1s", "--", *command)
    assert done.code == code
    assert said in done.err


@cases("name, text, code, said")
def test_what_is_no_log_is_said_with_the_command_to_type(asap, tmp_path, name, text, code, said):
    path = tmp_path / (name or "absent.log")
    if name:
        path.write_text(text, encoding="utf-8")
    done = asap("resolve", str(path))
    assert done.code == code
    assert said in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(("name", "text", "said"), [
    ("train.log", TEXTS["megatron-lm 2025"], "2.11 s"),
    ("config.yaml", "_wandb:\n  value: {}\nnum_layers:\n  value: 24\nseq_length:\n  value: 2048\n", "layers    24"),
    ("hparams.yaml", "cfg:\n  num_layers: 24\n  tensor_model_parallel_size: 4\n", "nemo"),
])  # fmt: skip
def test_what_a_log_or_a_tracker_settles_is_shown(asap, tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    done = asap("resolve", str(tmp_path / name))
    assert (done.code, said in done.out, "ended" in done.out) == (0, True, name == "train.log")
