"""What is installed is known; the main commands need no more than that, and open no connection."""

import os
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from licences import bill, required

SEEN = """
import os, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
ABSENT = set(os.environ["ABSENT"].split())
sys.meta_path.insert(0, Absent())
def hook(event, arguments):
    opened = event in ("socket.connect", "socket.getaddrinfo", "socket.sendto")
    if opened and not isinstance(arguments[-1], (str, bytes)):
        print("connection:", event, arguments, file=sys.stderr)
sys.addaudithook(hook)
from asap.cli import main
main()
"""
HERE = Path(__file__).parents[2]
COMMANDS = (
    ("analyze", "cpu-8dev"),
    ("analyze", str(HERE / "tests" / "data" / "logs" / "maxtext_h100.log"), "--hardware", "h100-1"),
    ("predict", "llama-8b-tensor-16", "--plan", "data=32 model=8"),
)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:1]))
def test_no_connection_is_opened_and_no_extra_is_needed(command, tmp_path, indexed_home):
    """By what Python opens, and by the calls of the system where strace is there; extras are not to be found."""
    environment = {name: value for name, value in os.environ.items() if name != "ASAP_CHROMA_URL"}
    environment |= {"ASAP_HOME": str(tmp_path / "home"), "ABSENT": " ".join(of_extras())}
    if command != COMMANDS[0]:  # which makes the search indexes
        shutil.copytree(indexed_home, tmp_path / "home")
    calls = tmp_path / "calls"
    traced = ["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o", str(calls)] if shutil.which("strace") else []
    done = subprocess.run(
        [*traced, sys.executable, "-c", SEEN, *command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "connection:" not in done.stderr
    seen = calls.read_text().splitlines() if calls.exists() else []
    assert [line for line in seen if "AF_INET" in line] == []


def of_extras() -> list[str]:
    """Modules of packages that come with extras alone."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    always = required(project["dependencies"]) | {"asap"}
    found = metadata.packages_distributions().items()
    return [name for name, packages in found if not {canonicalize_name(one) for one in packages} & always]


def test_extras_are_found_by_their_modules():
    assert {"jax", "xprof", "ray", "litellm"} & set(metadata.packages_distributions()) <= set(of_extras())


def test_the_bill_of_materials_names_every_package_with_version_and_licence():
    found = bill()
    assert found["bomFormat"] == "CycloneDX"
    components = found["components"]
    assert {"chromadb", "google-adk", "numpy"} <= {one["name"] for one in components}
    assert [one["name"] for one in components if not one["version"] or not one["licenses"][0]["license"]["name"]] == []
