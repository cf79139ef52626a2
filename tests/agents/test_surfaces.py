"""google-adk's own command line and web server, and the summary of CI: what a model invents is marked.

So it is in `asap analyze` (test_own_ideas), the chat (test_chat_models), MCP (test_mcp), `optimize` (test_evaluator).
"""

import logging
import os
import random
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from google.adk.cli.cli_tools_click import main as adk
from google.adk.cli.fast_api import get_fast_api_app
from google.adk.cli.utils.agent_loader import AgentLoader

import asap
from asap.agents.settings import Settings
from asap.agents.workflow.ci_summary import summarize
from asap.sharding_memory import Kind, Worklog, sessions
from tests.agents.services import GEMINI, PLANTED
from tests.ci.ci_scratch import CONFIG, TENSOR, Scratch
from tests.language_models.server import Say

pytestmark = pytest.mark.process

AGENTS = Path(asap.__file__).parent / "adk"
ADK = [sys.executable, "-m", "google.adk.cli"]
FIRST = "data=16 seq=4 model=8"
INVENTED = (
    "As the trace plainly shows, it waits for the host.",
    "Proposal 1 was measured on this pod: 97.3 % faster.",
    "It is proven in production.",
)


@pytest.fixture
def inventing(serving, monkeypatch):
    """A model that makes everything up."""
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", serving(lambda question: Say("\n".join(INVENTED))).url)
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)


def all_marked(text: str) -> bool:
    return all(text.count(f"~ {sentence}") == text.count(sentence) > 0 for sentence in INVENTED)


def run_adk(home, model: str, said: str) -> str:
    environment = os.environ | {"ASAP_HOME": str(home), "ASAP_MODEL": model}
    command = [*ADK, "run", "--in_memory", str(AGENTS)]
    done = subprocess.run(command, input=said, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout


def _free_port() -> int:
    """Below those that the system hands out, so that no other test's server gets it in between."""
    while True:
        with suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", random.randrange(20_000, 30_000)))
            return free.getsockname()[1]


@contextmanager
def adk_web(home, model: str):
    port = _free_port()
    command = [*ADK, "web", "--host", "127.0.0.1", "--port", str(port), "--no_use_local_storage", str(AGENTS)]
    environment = os.environ | {"ASAP_HOME": str(home), "ASAP_MODEL": model}
    silent = subprocess.DEVNULL
    with (
        subprocess.Popen(command, env=environment, stdout=silent, stderr=silent) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client,
    ):
        try:
            _wait_for(client, process)
            yield client
        finally:
            process.terminate()


def test_adk_run_finds_the_agents_and_keeps_a_worklog(home, log):
    before, written = set(sessions()), _files()
    said = "hello\npaper-v6e-16: what holds it back?\nanalyze no-such-run\nanalyze paper-v5p-512\noom 1\nnext\nexit\n"
    shown = run_adk(home, "builtin/planner", said)
    assert AgentLoader(str(AGENTS)).list_agents() == ["adk"]
    assert all(each in shown for each in ("Say: analyze EXPERIMENT", "correlation:", "no such experiment"))
    assert f"{FIRST} ran out of memory" in shown
    last = shown.rpartition("[coordinator]: ")[2]
    assert last.startswith("test ")
    assert not last.startswith(f"test {FIRST}")
    assert _files() == written, "nothing is written into the package"
    (session,) = {name for name in set(sessions()) - before if log(name, Kind.USER_INPUT)[0].payload["text"] == "hello"}
    assert [record.payload["text"] for record in log(session, Kind.USER_INPUT)] == said.splitlines()[:-1]


def test_a_fact_of_one_session_at_adk_web_is_unknown_in_another(home):
    with adk_web(home, "builtin/planner") as server:
        for person in ("ann", "ben"):
            _say(server, person, "analyze paper-v5p-512")
        assert f"{FIRST} ran out of memory" in _say(server, "ann", "oom 1")
        assert f"test {FIRST}" not in _say(server, "ann", "next")
        assert f"test {FIRST}" in _say(server, "ben", "next")


def test_what_a_model_invents_under_adk_run_and_at_adk_web_is_marked(home, inventing, monkeypatch):
    """In this process, where google-adk looks for the agent anew, and whose log is not left to it."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", root.handlers)
    monkeypatch.setenv("ASAP_MODEL", GEMINI)
    for name in [name for name in sys.modules if name.partition(".")[0] == "adk"]:
        monkeypatch.delitem(sys.modules, name)
    command = ["run", "--in_memory", "--log_level", logging.getLevelName(root.level), str(AGENTS)]
    done = CliRunner().invoke(adk, command, input="analyze paper-v5p-512\nexit\n")
    assert all_marked(done.output), done.output
    app = get_fast_api_app(agents_dir=str(AGENTS), web=False, use_local_storage=False)
    with TestClient(app) as server:
        assert all_marked(_say(server, "ann", "analyze paper-v5p-512"))


def test_what_a_model_invents_for_ci_is_marked(home, inventing, tmp_path):
    repo = Scratch(tmp_path / "repository")
    repo.commit(**{"a.yml": CONFIG})
    repo.commit(**{"a.yml": TENSOR})
    report = repo.check("HEAD~1", "HEAD")
    assert all_marked(summarize(report, Settings(model=GEMINI), Worklog("ci")))


def _files() -> set[Path]:
    return {path for path in AGENTS.rglob("*") if "__pycache__" not in path.parts}


def _wait_for(client: httpx.Client, process: subprocess.Popen) -> None:
    for _ in range(600):
        assert process.poll() is None
        try:
            assert client.get("/list-apps").json() == ["adk"]
            return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail("the server does not answer")


def _say(client: httpx.Client, person: str, text: str) -> str:
    client.post(f"/apps/adk/users/{person}/sessions/{person}", json={})
    message = {"role": "user", "parts": [{"text": text}]}
    body = {"app_name": "adk", "user_id": person, "session_id": person, "new_message": message}
    events = client.post("/run", json=body).raise_for_status().json()
    return "\n".join(
        part["text"] for e in events for part in (e.get("content") or {}).get("parts", []) if "text" in part
    )
