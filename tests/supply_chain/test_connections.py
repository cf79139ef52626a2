"""What is installed is known, and an analysis opens no connection."""

import os
import shutil
import subprocess
import sys

import pytest

from sbom import bill

SEEN = """
import sys
def hook(event, arguments):
    opened = event in ("socket.connect", "socket.getaddrinfo", "socket.sendto")
    if opened and not isinstance(arguments[-1], (str, bytes)):
        print("connection:", event, arguments, file=sys.stderr)
sys.addaudithook(hook)
from asap.cli import main
main()
"""
COMMANDS = (
    ("analyze", "cpu-8dev"),
    ("analyze", "llama-8b-tensor-16", "--format", "json"),
    ("predict", "llama-8b-tensor-16", "--plan", "data=32 model=8"),
)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_connection_is_opened(command, tmp_path):
    """By what Python opens, and by the calls of the system where strace is there."""
    environment = {name: value for name, value in os.environ.items() if name != "ASAP_CHROMA_URL"}
    environment["ASAP_HOME"] = str(tmp_path / "home")
    calls = tmp_path / "calls"
    traced = ["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o", str(calls)] if shutil.which("strace") else []
    done = subprocess.run(
        [*traced, sys.executable, "-c", SEEN, *command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "connection:" not in done.stderr
    seen = calls.read_text().splitlines() if calls.exists() else []
    assert [line for line in seen if "AF_INET" in line] == []


def test_the_bill_of_materials_names_every_package_with_version_and_licence():
    found = bill()
    assert found["bomFormat"] == "CycloneDX"
    components = found["components"]
    assert {"chromadb", "google-adk", "jax", "xprof", "numpy"} <= {one["name"] for one in components}
    assert [one["name"] for one in components if not one["version"] or not one["licenses"][0]["license"]["name"]] == []
