import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command_line import MAIN

TRAINER = Path(__file__).with_name("trainer.py")
pytestmark = [pytest.mark.process, pytest.mark.slow]


def arguments(mode: str = "good", budget: str = "4") -> list[str]:
    command = f'"{sys.executable}" "{TRAINER}" "{mode}" {{overrides}}'
    return ["optimize", "llama-8b-tensor-16", "--evaluate", "run", "--command", command, "--budget", budget,
            "--steps", "10", "--session", "s", "--yes", "--format", "json"]  # fmt: skip


def test_from_nothing_to_the_best_with_the_line_to_paste(run_command):
    done = run_command(*arguments())
    assert done.code == 0
    report = json.loads(done.out)
    assert report["schema"] == "asap.optimization/1"
    assert [each["outcome"]["status"] for each in report["tries"]] == ["done"] * 4
    times = [each["outcome"]["step_time_s"] for each in report["tries"]]
    assert report["best"]["step_time_s"] == min(times) < times[0]
    assert "ici_tensor_parallelism=" in " ".join(report["best"]["lines"])
    assert report["stopped"]["reason"] in ("budget", "not_worth_it")
    assert run_command("optimize", "show", "s", "--format", "json").out == done.out
    assert "recorded llama-8b-tensor-16--s-1: improved" in run_command("optimize", "record", "s").out
    precedent = json.loads(run_command("history", "show", "llama-8b-tensor-16--s-1", "--format", "json").out)
    assert precedent["measured_after"]["value"] == min(times)
    assert precedent["speedup"] == pytest.approx(times[0] / min(times))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_session_goes_on_and_pays_for_nothing_twice(tmp_path, home, seed, monkeypatch):
    starts, chance = tmp_path / "starts", random.Random(seed)
    environment = os.environ | {"STARTS": str(starts), "SLEEP": "0.02", "ASAP_HOME": str(home)}
    command = arguments(budget="3")
    for _ in range(3):
        asap = subprocess.Popen([sys.executable, "-c", MAIN, *command], env=environment, stdout=subprocess.DEVNULL)
        begun = time.monotonic()
        while not (home / "sessions" / "s.tries").exists() and time.monotonic() - begun < 30:
            time.sleep(0.02)
        time.sleep(chance.uniform(0.0, 2.0))
        asap.send_signal(signal.SIGKILL)
        asap.wait()
        command = ["optimize", "resume", "s", "--yes", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *command], env=environment, capture_output=True, text=True, check=True
    )
    report = json.loads(done.stdout)
    tried = [each["configuration"] for each in report["tries"]]
    assert [each["outcome"]["status"] for each in report["tries"]] == ["done"] * len(tried)
    assert len(starts.read_text().splitlines()) == len(tried) == len(set(tried)) == 3


def test_a_launcher_that_ignores_its_overrides_is_not_paid_for_long(run_command):
    done = run_command(*arguments("ignores", "9"))
    report = json.loads(done.out)
    assert report["stopped"]["reason"] == "failing"
    assert len(report["tries"]) < 9


def test_two_sessions_on_one_experiment_do_not_disturb_each_other(run_command, home):
    from asap.optimize.session import only_session

    with only_session("llama-8b-tensor-16"):
        done = run_command(*arguments())
    assert done.code == 2
    assert "another session is measuring this experiment" in done.err


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--evaluate", "run", "--command", "x {overrides}"], "say how much may be spent"),
        (["--evaluate", "run", "--budget", "8"], "needs a command"),
        (["--evaluate", "run", "--budget", "many", "--command", "x {overrides}"], "is not a budget"),
        (["--evaluate", "run", "--budget", "8", "--command", "x {overrides}"], "nobody is here to agree"),
        (["--command", "x {overrides}"], "is for --evaluate run"),
        (["--allow", "warp"], "is not a lever that can be allowed"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(run_command, monkeypatch, wrong, says):
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115
    done = run_command("optimize", "llama-8b-tensor-16", *wrong)
    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.err
