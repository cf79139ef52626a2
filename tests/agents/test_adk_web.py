"""Two people at google-adk's web server: neither hears the other's facts."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import asap

pytestmark = pytest.mark.process

AGENTS = Path(asap.__file__).parent / "adk"
FIRST = "data=16 seq=4 model=8"


@pytest.fixture
def server(home) -> Iterator[httpx.Client]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--no_use_local_storage"]
    command = [sys.executable, "-m", "google.adk.cli", "web", *options, str(AGENTS)]
    environment = os.environ | {"ASAP_HOME": str(home), "ASAP_MODEL": "builtin/planner"}
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


def test_a_fact_of_one_session_is_unknown_in_another(server):
    for person in ("ann", "ben"):
        _say(server, person, "analyze paper-v5p-512")
    assert f"{FIRST} ran out of memory" in _say(server, "ann", "oom 1")
    assert f"test {FIRST}" not in _say(server, "ann", "next")
    assert f"test {FIRST}" in _say(server, "ben", "next")


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
