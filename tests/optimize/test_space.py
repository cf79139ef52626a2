"""A search space of the user's own: what a file may say, and a loop over it that finds the best and can be resumed."""

import json
import sys
from pathlib import Path

import pytest

from asap.core.errors import ConfigError
from asap.optimize.space import read_space
from tests.cases import cases, kept

pytest.importorskip("optuna")
TRAINER = Path(__file__).with_name("trainer.py")
SPACE = kept(__file__)["SPACE"]


@pytest.fixture
def space(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return path


@pytest.mark.process
def test_the_loop_finds_the_best_keeps_the_rules_and_goes_on(run_command, space, tmp_path, monkeypatch):
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))
    command = f'"{sys.executable}" "{TRAINER}" good {{overrides}} # {{try}}'
    given = ("--command", command, "--steps", "5", "--yes", "--format", "json")
    assert run_command("optimize", "run", "--space", str(space), *given, "--budget", "6", "--session", "s").code == 0
    done = run_command("optimize", "resume", "s", "--budget", "24", "--yes", "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert "ici_tensor_parallelism=2 remat_policy=minimal num_vocab_tiling=" in found["best"]["configuration"]
    starts = [line.split() for line in (tmp_path / "starts").read_text().splitlines()]
    assert len(found["tries"]) == len(starts) == 24
    for words in starts:
        assert "ici_tensor_parallelism=1" not in words
        assert any("num_vocab_tiling" in word for word in words) == ("remat_policy=minimal" in words)
        assert not any("STARTS_TOO" in word for word in words)
    assert ("export STARTS_TOO=" in found["best"]["lines"][0], found["best"]["lines"][-1][-6:]) == (True, "# best")


def test_without_optuna_nothing_is_run(run_command, space, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    command = ("--command", f"touch {tmp_path}/ran; echo {{overrides}}", "--budget", "6", "--yes")
    done = run_command("optimize", "run", "--space", str(space), *command)
    assert (done.code, "pip install -e '.[optuna]'" in done.err) == (2, True)
    assert not (tmp_path / "ran").exists()


@cases("text, says")
def test_a_space_that_says_no_space_is_refused_with_the_place(tmp_path, text, says):
    (path := tmp_path / "space.toml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_space(path)
