import json
import stat
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from asap.core.errors import AsapError, ConfigError, UsageError
from asap.optimize.evaluators.run.command import Command, write_changed
from asap.optimize.evaluators.run.evaluator import RunEvaluator, RunLimits
from asap.proposals.proposal import Overrides
from tests.cases import kept

NANOTRON = "parallelism: {tp: 4, dp: 2}\ntokens: {micro_batch_size: 1}"
TRAINER = kept(__file__)["TRAINER"]


@pytest.mark.parametrize(("name", "text", "overrides", "changed"), [
    ("a.yaml", "parallelism:\n  tp: 1\n  pp: 2\nlr: 1e-4\n", Overrides(stack="nanotron", text=NANOTRON),
     {"parallelism": {"tp": 4, "pp": 2, "dp": 2}, "lr": "1e-4", "tokens": {"micro_batch_size": 1}}),
    ("a.json", '{"zero_optimization": {"stage": 3}}', Overrides(stack="deepspeed",
      text='{"zero_optimization": {"stage": 2}}'),
     {"zero_optimization": {"stage": 2}}),
    ("a.toml", "# mine\n[training]\nsteps = 1 # one\n",
     Overrides(stack="torchtitan", text="[training]\nsteps = 4"), {"training": {"steps": 4}}),
    ("a.yml", "steps: 5\n", Overrides(stack="maxtext", text="ici_fsdp_parallelism=8 remat_policy=full"),
     {"steps": 5, "ici_fsdp_parallelism": 8, "remat_policy": "full"}),
    ("a.yaml", "model: {tp: 1}", Overrides(stack="nemo", text="model.tp=4 +trainer.nodes=2"),
     {"model": {"tp": 4}, "trainer": {"nodes": 2}}),
])  # fmt: skip
def test_a_try_has_a_copy_of_the_file_with_its_settings(tmp_path, name, text, overrides, changed):
    original, folder = tmp_path / name, tmp_path / "a try"
    original.write_text(text)
    original.chmod(0o600)
    folder.mkdir()
    script = Command("run --config {config}", config=original).script(overrides, "", "t", folder)
    copy = folder / name
    assert script == f"run --config '{copy}'"
    assert _parsed(copy) == changed
    assert original.read_text() == text
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert ("# mine" in copy.read_text()) == ("# mine" in text)


def test_a_launcher_that_reads_a_file_is_run_with_it(tmp_path):
    config, trainer, folder = tmp_path / "train.yaml", tmp_path / "train.py", tmp_path / "try"
    config.write_text("parallelism: {tp: 1, dp: 8}\n")
    trainer.write_text(TRAINER)
    folder.mkdir()
    command = Command(f'"{sys.executable}" "{trainer}" {{config}}', config=config)
    tried = RunEvaluator(
        command, "tests", lambda plan: Overrides(stack="nanotron", text=NANOTRON), None, RunLimits(10, 20.0), tmp_path
    )
    outcome = tried.evaluate("replica=2 model=4", folder)
    assert (outcome.status, outcome.step_time_s, outcome.feedback) == ("done", 1.23, ())


@pytest.mark.parametrize(("name", "text", "says"), [
    ("a.yaml", "parallelism: [1, 2]", "parallelism is no section"), ("a.yaml", "- 1", "is no mapping"),
    ("a.yaml", "a: [", "cannot be parsed"), ("a.yaml", "a: !!python/name:os.system x", "cannot be parsed"),
    ("a.json", "{", "cannot be parsed"), ("a.toml", "a = ", "cannot be parsed"),
    ("a.py", "a = 1", "neither YAML, JSON nor TOML"), ("a.json", "[" * 100_000, "cannot be parsed"),
])  # fmt: skip
def test_a_file_that_cannot_be_changed_is_refused(tmp_path, name, text, says):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        write_changed(path, {"parallelism": {"tp": 4}}, tmp_path)


@pytest.mark.parametrize(("start", "config"), [("run {config}", None), ("run {overrides}", Path("a.yaml"))])
def test_the_file_and_its_place_in_the_command_go_together(start, config):
    with pytest.raises(UsageError, match="config"):
        Command(start, config=config)


def test_a_file_that_does_not_exist_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(AsapError, match="missing"):
        Command("run {config}", config=tmp_path / "missing.yaml")


def _parsed(path: Path) -> object:
    text = path.read_text()
    parse = {".json": json.loads, ".toml": tomllib.loads}.get(path.suffix, yaml.safe_load)
    return parse(text)
