import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ci_github import FakeGitHub, serve
from ci_scratch import CONFIG, TENSOR

from asap.ci.render.comment import MARKER

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "asap" / "ci" / "github" / "templates"
FILES = [ROOT / "action.yml", *sorted(TEMPLATES.glob("*.yml"))]
ASAP = f"""\
#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from asap.cli import main
from asap.cli.app import app
from asap.cli.services import ci
if "ci" not in {{group.name for group in app.registered_groups}}:
    app.add_typer(ci.app, name="ci")
main()
"""


def steps(file):
    document = yaml.safe_load(file.read_text())
    jobs = [document["runs"]] if "runs" in document else document["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_and_scripts_take_no_expression(file):
    for step in steps(file):
        assert re.fullmatch(r"ASAP_ACTION|[\w-]+/[\w-]+@[0-9a-f]{40}", step.get("uses", "ASAP_ACTION"))
        assert "${{" not in step.get("run", "")


def test_the_check_has_no_write_permission_and_keeps_no_credential():
    document = yaml.safe_load((TEMPLATES / "asap-check.yml").read_text())
    assert document["permissions"] == {"contents": "read"}
    assert document[True] == {"pull_request": None}
    checkout = steps(TEMPLATES / "asap-check.yml")[0]
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}
    assert "secrets." not in (TEMPLATES / "asap-check.yml").read_text()


def test_the_comment_checks_nothing_out_and_may_do_little():
    document = yaml.safe_load((TEMPLATES / "asap-comment.yml").read_text())
    check = yaml.safe_load((TEMPLATES / "asap-check.yml").read_text())
    assert document[True] == {"workflow_run": {"workflows": [check["name"]], "types": ["completed"]}}
    assert document["permissions"] == {}
    assert document["jobs"]["comment"]["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert not any("checkout" in step.get("uses", "") for step in steps(TEMPLATES / "asap-comment.yml"))


class Runner:
    """Runs steps of the action as a workflow does."""

    def __init__(self, folder: Path, work: Path):
        self.temporary, self.work = folder, work
        asap = folder / "asap-venv" / "bin" / "asap"
        asap.parent.mkdir(parents=True)
        asap.write_text(ASAP)
        asap.chmod(0o755)

    def step(self, name: str, **environment: str) -> subprocess.CompletedProcess:
        script = next(step["run"] for step in steps(ROOT / "action.yml") if step.get("name") == name)
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=self.work,
            env={**os.environ, "RUNNER_TEMP": str(self.temporary), "GITHUB_ACTIONS": "true", **environment},
            capture_output=True, text=True,
        )  # fmt: skip


def test_a_pull_request_of_a_fork_goes_through_both_workflows(repo, tmp_path):
    prices = "[ci.prices]\nchips = {v5p = 2}\n"
    repo.commit(**{"configs/a.yml": CONFIG, "configs/b.yml": CONFIG, "asap.toml": prices})
    repo.git("checkout", "-q", "-b", "change")
    repo.commit(**{"configs/a.yml": TENSOR})
    repo.git("mv", "configs/b.yml", "configs/c.yml")
    head = repo.commit(**{"configs/d.yml": CONFIG.replace("batch_size: 2", "batch_size: 64")})
    runner = Runner(tmp_path / "temporary", repo.folder)
    checked = runner.step("Check", BASE="main", HEAD=head, EXPERIMENTS="")
    assert (checked.returncode, "::error file=configs/d.yml" in checked.stderr) == (1, True)

    run = {"head_sha": head, "head_branch": "change", "head_repository": {"owner": {"login": "fork"}}}
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"repository": {"full_name": "o/r"}, "workflow_run": run | {"pull_requests": []}}))
    state = FakeGitHub()
    state.pull(7, head)
    state.add(f"{MARKER}\nmine", "mallory")
    elsewhere = Runner(tmp_path / "privileged", tmp_path)
    with serve(state) as address:
        place = {"GITHUB_EVENT_PATH": str(event), "GITHUB_API_URL": address, "GITHUB_TOKEN": "t"}
        for _ in range(2):
            artifact = str(tmp_path / "temporary" / "asap-ci-result")
            commented = elsewhere.step("Comment", ARTIFACT=artifact, **place)
            assert commented.returncode == 0, commented.stderr
    (ours,) = state.of()
    assert "### configs/d.yml" in ours["body"]
    assert "**Fails**" in ours["body"]
    assert re.search(r"price of a day .* USD \|", ours["body"])
    assert {token for _, _, token in state.requests} == {"Bearer t"}
