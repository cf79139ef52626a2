import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from asap.core.errors import PlanError, UsageError
from asap.experiments.store import BUNDLED
from asap.optimize.evaluators.run.command import Command, words
from asap.optimize.evaluators.run.evaluator import RunEvaluator, RunLimits
from asap.optimize.evaluators.run.log import RunLog
from asap.optimize.evaluators.run.process import Process
from asap.optimize.evaluators.run.settings import asked_settings, decisive, settings_document
from asap.optimize.outcome import Code
from asap.plans import Plan
from asap.proposals.proposal import Overrides
from asap.stacks.deepspeed.stack import OF_JSON
from tests.cases import cases, listed

TRAINER = Path(__file__).with_name("trainer.py")
PLAN = str(Plan.parse("data=8 remat=full"))
pytestmark = pytest.mark.process


def evaluator(mode: str, *, seconds: float = 20.0, start: str = "", steps_from: str | None = None):
    command = start or f'"{sys.executable}" "{TRAINER}" "{mode}" {{overrides}}'
    return RunEvaluator(
        command=Command(command, steps_from=steps_from), session="tests",
        overrides=lambda plan: Overrides(stack="maxtext", text="ici_fsdp_parallelism=8 remat_policy=full"),
        tokens=None, limits=RunLimits(steps=10, seconds=seconds), folder=Path.cwd(),
    )  # fmt: skip


@cases("mode, status, code, says")
def test_what_dies_dies_with_a_reason(tmp_path, mode, status, code, says):
    limits = 40 if mode == "slower" else 10
    outcome = replace(evaluator(mode), limits=RunLimits(limits, 20.0)).evaluate(PLAN, tmp_path)
    assert (outcome.status, outcome.step_time_s) == (status, None)
    (found,) = outcome.feedback
    assert found.code == code
    assert says in found.explanation
    assert "\x1b" not in found.explanation


def test_a_run_is_stopped_when_enough_steps_are_timed(tmp_path):
    outcome = evaluator("good").evaluate(PLAN, tmp_path)
    assert (outcome.status, outcome.feedback) == ("done", ())
    assert outcome.step_time_s == pytest.approx(2.5 * (1 + 0.2 * 16) * 1.2, rel=1e-3)
    assert 10 <= (outcome.steps or 0) < 40


def test_what_is_far_slower_than_the_best_is_stopped_early_and_counts_after_a_kill(tmp_path, monkeypatch):
    monkeypatch.setenv("SLEEP", "0.1")
    tried = replace(evaluator("silent"), limits=RunLimits(steps=30), timed=[0.5])
    outcome = tried.evaluate(PLAN, tmp_path)
    assert (outcome.status, outcome.step_time_s, tried.timed) == ("done", 1.0, [0.5, 1.0])
    assert 5 <= (outcome.steps or 0) < 30
    assert replace(tried, timed=[0.5]).evaluate(PLAN, tmp_path).step_time_s == 1.0


def test_a_step_that_no_hardware_takes_does_not_count(tmp_path):
    tried = replace(evaluator("silent"), objection=lambda configuration, seconds: f"{seconds} s are too short")
    outcome = tried.evaluate(PLAN, tmp_path)
    assert (outcome.status, outcome.step_time_s) == ("failed", None)
    assert [found.code for found in outcome.feedback] == [Code.WRONG_RESULT]
    assert "1.0 s are too short" in outcome.feedback[0].explanation


@cases("settings, strays")
def test_a_log_of_another_batch_length_or_layout_than_the_record_is_no_result(tmp_path, settings, strays):
    more = "per_device_batch_size=4 max_target_length=2048 dcn_data_parallelism=2"
    start = f'"{sys.executable}" "{TRAINER}" good {{overrides}} {more}'
    tried = RunEvaluator(**{**vars(evaluator("", start=start)), "on_record": decisive(settings)})
    outcome = tried.evaluate(PLAN, tmp_path)
    assert (outcome.status == "done") == (strays is None)
    assert [said.explanation for said in outcome.feedback] == ([strays] if strays else [])


@pytest.mark.parametrize(
    ("mode", "steps", "code"),
    [("silent", 10, Code.UNCHECKED), ("noisy", 10, Code.NOISE), ("noisy", 40, Code.NOISE)],
    ids=["silent", "noisy", "noisy, its last third slower than its first"],
)
def test_a_result_that_says_little_is_marked(tmp_path, mode, steps, code):
    tried = evaluator(mode)
    outcome = RunEvaluator(**{**vars(tried), "limits": RunLimits(steps, 20.0)}).evaluate(PLAN, tmp_path)
    assert (outcome.status, outcome.codes) == ("done", {code})


def test_step_times_are_read_from_tensorboard_where_the_log_has_none(tmp_path):
    pytest.importorskip("tensorboard", reason="extra tensorboard")
    start = f'BOARD={{folder}}/logs "{sys.executable}" "{TRAINER}" board {{overrides}}'
    outcome = evaluator("", start=start, steps_from="tensorboard:{folder}/logs").evaluate(PLAN, tmp_path)
    assert (outcome.status, outcome.step_time_s, outcome.steps) == ("done", 0.5, 20)
    missing = evaluator("nothing", steps_from="tensorboard:{folder}/none").evaluate(PLAN, _folder(tmp_path, "2"))
    assert (missing.status, missing.codes) == ("failed", {Code.NO_STEP_TIME})
    assert "no such log directory" in missing.feedback[0].explanation


def test_step_times_are_read_from_the_mlflow_run_of_the_try(tmp_path, monkeypatch):
    pytest.importorskip("mlflow.server", reason="extra mlflow, with its server")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    start = f'RUN_NAME={{try}} "{sys.executable}" "{TRAINER}" mlflow {{overrides}}'
    tried = evaluator("", start=start, steps_from="mlflow:{try}", seconds=200.0)
    outcome = tried.evaluate(PLAN, _folder(tmp_path, "1"))
    assert (outcome.status, outcome.step_time_s, outcome.steps) == ("done", 0.5, 20)


def test_the_profile_that_a_command_writes_gives_step_time_and_what_it_waits_for(tmp_path):
    start = f"cp -r {BUNDLED / 'cpu-8dev'} {{folder}}/profile; echo {{overrides}}"
    outcome = evaluator("", start=start).evaluate(PLAN, tmp_path)
    assert outcome.status == "done"
    assert outcome.step_time_s == pytest.approx(0.2134, rel=1e-3)
    assert Code.EXPOSED_COLLECTIVE in outcome.codes


@pytest.mark.parametrize("name", ["openxla_xprof__gpu_multi_worker"])
def test_devices_that_wait_for_the_host_are_told_by_a_real_profile(tmp_path, name):
    profile = Path(__file__).parents[3] / "shared" / "profiles" / name
    if not profile.exists():
        pytest.skip("the profile is not here")
    outcome = evaluator(
        "good", start=f'cp -r {profile} {{folder}}/profile; "{sys.executable}" "{TRAINER}" good {{overrides}}'
    )
    found = outcome.evaluate(PLAN, tmp_path)
    (said,) = (each for each in found.feedback if each.code == Code.LAUNCH_BOUND)
    assert "idle" in said.explanation


def test_a_log_of_gigabytes_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as stream:
        stream.truncate(64 << 30)
    log = RunLog(path, {}, None, most_bytes=8 << 20)
    assert log.read()
    assert log.too_long
    assert len(log.tail) <= 200


def test_the_end_of_a_log_that_grew_faster_than_it_was_read_is_read(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as stream:
        stream.truncate(1 << 30)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\nRuntimeError: the moon is full")
    log = RunLog(path, {}, None)
    log.read()
    assert log.is_behind
    log.read(to_end=True)
    assert not log.is_behind
    assert log.tail[-1] == "RuntimeError: the moon is full"


LOGS = Path(__file__).parents[1] / "data" / "logs"
"""Of runs on one H100: parts of their logs, as the trainers wrote them."""
AC = "activation_checkpoint.mode"


@cases("name, asked, ignored")
def test_what_a_real_log_shows_is_compared_with_what_was_asked(name, asked, ignored):
    log = RunLog(LOGS / f"{name}.log", asked, None)
    log.read(to_end=True)
    assert log.shown.keys() == asked.keys()
    assert listed(log.ignored()) == ignored


@pytest.mark.parametrize(
    ("name", "gibibytes"), [("torchtitan_h100", 47.14), ("torchtitan_h100_none", 71.68), ("maxtext_h100", 41.9)]
)
def test_the_memory_that_a_real_log_shows_is_read(name, gibibytes):
    log = RunLog(LOGS / f"{name}.log", {}, 8 * 4096)
    log.read(to_end=True)
    assert log.hbm_bytes == pytest.approx(gibibytes * 2**30)
    assert len(log.times) >= 7


def test_a_hang_ends_with_everything_that_was_started(tmp_path):
    outcome = evaluator("hangs", seconds=1.0).evaluate(PLAN, tmp_path)
    assert outcome.status == "failed"
    assert outcome.codes == {Code.HANG}
    assert _group_is_gone(tmp_path)


def test_a_run_that_the_budget_ends_is_lost_and_says_so(tmp_path):
    outcome = evaluator("hangs", seconds=20.0).evaluate(PLAN, tmp_path, 0.5)
    assert (outcome.status, outcome.codes) == ("lost", {Code.BUDGET_SPENT})
    assert _group_is_gone(tmp_path)


def test_a_child_that_a_run_leaves_is_ended_too(tmp_path):
    assert evaluator("leaves a child").evaluate(PLAN, tmp_path).status == "done"
    assert _group_is_gone(tmp_path)


def test_a_second_evaluation_in_the_same_place_pays_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))
    first = evaluator("good").evaluate(PLAN, _folder(tmp_path, "1"))
    assert evaluator("good").evaluate(PLAN, tmp_path / "1").step_time_s == first.step_time_s
    assert len((tmp_path / "starts").read_text().splitlines()) == 1


def test_a_run_whose_group_was_killed_is_lost_and_not_blamed(tmp_path):
    process = Process(tmp_path)
    process.start("sleep 300", tmp_path)
    while process.began is None:
        time.sleep(0.01)
    os.killpg(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    outcome = evaluator("good").evaluate(PLAN, tmp_path)
    assert (outcome.status, outcome.codes) == ("lost", {Code.PREEMPTED})


def test_a_command_that_takes_no_overrides_is_refused():
    with pytest.raises(UsageError, match="every try would be the same"):
        Command("./train.sh")


@cases("stack, text, arguments, settings")
def test_the_words_of_every_launcher_become_arguments(stack, text, arguments, settings):
    overrides = Overrides(stack=stack, text=text)
    assert words(overrides) == arguments
    assert asked_settings(overrides) == settings


@cases("start, status")
def test_an_option_that_a_try_leaves_out_is_not_there(tmp_path, start, status):
    tried = evaluator("", start=f'{start}"{sys.executable}" "{TRAINER}" silent {{overrides}}')
    words = "--micro-batch-size=2 # without --swiglu --recompute-activations  # with X other than 1"
    tried = RunEvaluator(**{**vars(tried), "overrides": lambda plan: Overrides(stack="megatron", text=words)})
    outcome = tried.evaluate(PLAN, tmp_path)
    assert outcome.status == status
    if status == "failed":
        (found,) = outcome.feedback
        assert (found.code, "leaves it out" in found.explanation) == (Code.IGNORED_OVERRIDE, True)


def test_a_change_of_two_files_is_no_change_of_one():
    both = Overrides(stack="deepspeed", text=f'micro_batch_size: 2\n{OF_JSON}\n{{"zero_optimization": {{"stage": 2}}}}')
    assert asked_settings(both) == {"micro_batch_size": "2", "zero_optimization.stage": "2"}
    with pytest.raises(PlanError, match="a try changes one file"):
        settings_document(both)
    assert settings_document(Overrides(stack="deepspeed", text="micro_batch_size: 2")) == {"micro_batch_size": 2}


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


def _group_is_gone(place: Path) -> bool:
    group = (place / "pid").read_text().strip()
    found = subprocess.run(["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in found.stdout.splitlines()]
    return not any(row[0] == group and not row[1].startswith("Z") for row in rows)
