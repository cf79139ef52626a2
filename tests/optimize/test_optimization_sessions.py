import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cases import cases
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


SPACE = "[settings.remat_policy]\nvalues = ['full', 'minimal']\n[settings.ici_tensor_parallelism]\nlow = 1\nhigh = 64\n"


@pytest.mark.parametrize(("seed", "at_once", "space"), [(1, 1, False), (4, 3, True)])
def test_a_killed_session_goes_on_and_pays_for_nothing_twice(tmp_path, home, seed, at_once, space):
    starts, chance = tmp_path / "starts", random.Random(seed)
    (file := tmp_path / "space.toml").write_text(SPACE)
    environment = os.environ | {"STARTS": str(starts), "SLEEP": "0.02", "ASAP_HOME": str(home)}
    command = [*arguments(budget="3"), "--parallel", str(at_once)]
    command[1:4] = ["run", "--space", str(file)] if space else command[1:4]
    for _ in range(3):
        asap = subprocess.Popen([sys.executable, "-c", MAIN, *command], env=environment, stdout=subprocess.DEVNULL)
        begun = time.monotonic()
        while not (home / "sessions" / "s.tries").exists() and time.monotonic() - begun < 300:
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


MODEL = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
    "num_hidden_layers": 4, "num_key_value_heads": 8, "vocab_size": 1024,
}  # fmt: skip


def bare(tmp_path: Path, more: str = "", mode: str = "good") -> list[str]:
    (path := tmp_path / "config.json").write_text(json.dumps(MODEL))
    command = f'"{sys.executable}" "{TRAINER}" "{mode}" {{overrides}} {more}'
    return ["optimize", str(path), "workload.framework=MaxText", "--hardware", "v5e-8", "--batch", "16",
            "--sequence", "512", "--evaluate", "run", "--command", command, "--budget", "3", "--steps", "10",
            "--session", "bare", "--yes", "--format", "json"]  # fmt: skip


def test_where_nothing_runs_no_try_is_called_what_runs_now_and_the_best_has_its_line(run_command, tmp_path):
    done = run_command(*bare(tmp_path))
    assert done.code == 0
    assert "runs now" not in done.out + done.err
    best = json.loads(done.out)["best"]
    assert "ici_fsdp_parallelism=" in " ".join(best["lines"])
    assert "max_target_length=512" in " ".join(best["lines"])
    assert run_command("optimize", "show", "bare", "--format", "json").out == done.out


def test_a_command_that_trains_another_length_than_asked_is_no_result(run_command, tmp_path):
    report = json.loads(run_command(*bare(tmp_path, "max_target_length=2048")).out)
    assert report["best"] is None
    (said, *_) = report["tries"][0]["outcome"]["feedback"]
    assert said["code"] == "IGNORED_OVERRIDE"
    assert said["explanation"] == "the log shows max_target_length=2048, asked for was 512"


def test_what_is_interrupted_before_anything_was_timed_says_so_and_how_to_go_on(tmp_path, home):
    environment = os.environ | {"ASAP_HOME": str(home)}
    command = [sys.executable, "-c", MAIN, *bare(tmp_path, mode="hangs")]
    asap = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    until = time.monotonic() + 30
    while not list((home / "sessions").glob("bare.tries/*/log")) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)
    asap.send_signal(signal.SIGINT)
    out, _ = asap.communicate(timeout=30)
    assert asap.returncode == 130
    assert "asap optimize resume bare" in json.loads(out)["stopped"]["statement"]


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


@cases("wrong, says")
def test_what_cannot_be_done_is_said_in_one_line(run_command, wrong, says):
    done = run_command("optimize", "llama-8b-tensor-16", *wrong)
    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.err
