"""google-adk's own command line finds the agents."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from google.adk.cli.utils.agent_loader import AgentLoader

import asap
from asap.sharding_memory import Kind, sessions

pytestmark = pytest.mark.process

AGENTS = Path(asap.__file__).parent / "adk"


def test_adk_web_lists_the_agents():
    assert AgentLoader(str(AGENTS)).list_agents() == ["adk"]


def test_adk_run_finds_the_agents_and_keeps_a_worklog(home, log):
    command = [sys.executable, "-m", "google.adk.cli", "run", "--in_memory", str(AGENTS)]
    environment = os.environ | {"ASAP_HOME": str(home), "ASAP_MODEL": "builtin/planner"}
    before = set(sessions())
    written = _files()
    said = "hello\nanalyze no-such-run\nanalyze paper-v5p-512\noom 1\nnext\nexit\n"
    done = subprocess.run(command, input=said, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert "Say: analyze EXPERIMENT" in done.stdout
    assert "no such experiment" in done.stdout
    assert "data=16 seq=4 model=8" in done.stdout
    assert "data=16 seq=4 model=8 ran out of memory" in done.stdout
    last = done.stdout.rpartition("[coordinator]: ")[2]
    assert last.startswith("test ")
    assert not last.startswith("test data=16 seq=4 model=8")
    assert _files() == written, "nothing is written into the package"
    (session,) = {name for name in set(sessions()) - before if log(name, Kind.USER_INPUT)[0].payload["text"] == "hello"}
    assert [record.payload["text"] for record in log(session, Kind.USER_INPUT)] == said.splitlines()[:-1]


def _files() -> set[Path]:
    return {path for path in AGENTS.rglob("*") if "__pycache__" not in path.parts}
