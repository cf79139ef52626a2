"""The lines for clusters on the page about ``asap optimize``, as they stand, with stand-ins for the clusters' tools."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from asap.optimize.evaluators.run.command import Command, name_of_try
from asap.optimize.evaluators.run.evaluator import RunEvaluator, RunLimits
from asap.optimize.outcome import Code
from asap.proposals.proposal import Overrides

HERE = Path(__file__).parent
PAGE = Path(HERE, "../../docs/optimize.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"```sh\n(asap .*?)```", PAGE.partition("## Clusters")[2].partition("\n## ")[0], re.DOTALL)
JOBSET = """
metadata: {name: $NAME}
spec: {replicatedJobs: [{name: workers, template: {spec: {template: {spec: {containers: [CONTAINER]}}}}}]}
"""
CONTAINER = '{command: [sh, -c], args: ["python3 train.py $ARGUMENTS"]}'


@pytest.fixture(params=RECIPES, ids=["slurm", "jobset", "xpk", "ray"])
def recipe(request, tmp_path, monkeypatch):
    """A try of a line of the page in a folder with what it names; and the calls of the cluster's tools."""
    for tool in ("sbatch", "scancel", "kubectl", "xpk", "ray"):
        (tmp_path / tool).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE}/cluster.py" {tool} "$@"\n')
    (tmp_path / "python3").write_text(f'#!/bin/sh\nshift; exec "{sys.executable}" "{HERE}/trainer.py" "$MODE" "$@"\n')
    (tmp_path / "sleep").write_text("#!/bin/sh\nexec /bin/sleep 0.05\n")
    (tmp_path / "train.sbatch").write_text('exec python3 train.py "$@"\n')
    (tmp_path / "jobset.yaml").write_text(JOBSET.replace("CONTAINER", CONTAINER))
    for tool in tmp_path.iterdir():
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("CLUSTER", str(tmp_path))
    (place := tmp_path / "tries" / "2").mkdir(parents=True)
    said = shlex.split(request.param.replace("\\\n", " "))
    values = dict(zip(said[3::2], said[4::2], strict=False))
    words = "ici_fsdp_parallelism=8 remat_policy=full 'num_vocab_tiling=4'"

    def run(mode: str, seconds: float = 20.0):
        monkeypatch.setenv("MODE", mode)
        tried = RunEvaluator(
            Command(values["--command"], values.get("--wait-for"), values["--cancel"]), "20261129-040312-1f3a9c",
            lambda plan: Overrides(stack="maxtext", text=words), None, RunLimits(10, seconds), tmp_path,
        )  # fmt: skip
        return tried.evaluate("data=8", place), (tmp_path / "calls").read_text()

    return run


@pytest.mark.process
def test_a_job_gets_its_arguments_is_waited_for_and_cancelled_once_it_has_shown_enough(recipe, monkeypatch):
    monkeypatch.setenv("SLEEP", "0.05")
    outcome, calls = recipe("good")
    assert (outcome.status, outcome.feedback) == ("done", ())
    assert outcome.step_time_s == pytest.approx(2.5 * (1 + 0.2 * 16) * 1.2 * 0.8, rel=1e-3)
    first, *_, last = calls.splitlines()
    assert "asap-20261129-040312-1f3a9c-2" in (first if "kubectl apply" not in first else last)
    assert re.search(r"scancel|delete|stop", last)


@pytest.mark.process
@pytest.mark.parametrize(("mode", "code"), [("crashes", Code.CRASHED), ("memory", Code.OUT_OF_MEMORY)])
def test_a_job_that_dies_brings_its_log_and_its_exit_code_back(recipe, mode, code):
    outcome, calls = recipe(mode)
    assert outcome.codes == {code}
    assert not re.search(r"scancel|delete|stop", calls)


@pytest.mark.parametrize("session", ["20261129-040312-1f3a9c", "s", "My_Run", "a" * 100, "x.", "-"])
def test_a_name_of_a_try_is_taken_by_every_cluster(session):
    names = {name_of_try(session, str(number)) for number in (1, 11, 9999)}
    assert len(names) == 3
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name) and len(name) < 40 for name in names)
