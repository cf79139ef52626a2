"""What the command line loads before it knows what to do."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

BY_TYPER = {"rich", "pydantic"}
HEAVY = ("pydantic", "numpy", "rich", "chromadb", "google", "jax", "xprof", "yaml")


def loaded(*arguments):
    program = (
        "import sys; sys.argv = ['asap', *sys.argv[1:]]\n"
        "import asap.cli\n"
        "try: asap.cli.main()\n"
        "except SystemExit: pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return done.stdout, set(done.stderr.split())


def test_the_version_loads_nothing_but_itself():
    printed, modules = loaded("--version")
    assert printed.startswith("asap ")
    assert "typer" not in modules
    assert not modules & set(HEAVY)


def test_the_package_is_a_command_as_well():
    done = subprocess.run([sys.executable, "-m", "asap", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == loaded("--version")[0]


@pytest.mark.parametrize("arguments", [["--help"], ["experiments", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    printed, modules = loaded(*arguments)
    assert "Usage" in printed
    assert not modules & (set(HEAVY) - BY_TYPER)


def test_a_job_that_is_stopped_ends_like_one_that_is_interrupted(tmp_path):
    program = "import sys; sys.argv = ['asap', *sys.argv[1:]]\nimport asap.cli\nasap.cli.main()"
    environment = os.environ | {"ASAP_HOME": str(tmp_path)}
    command = [sys.executable, "-c", program, "chat", "paper-v5p-512"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment) as chat:
        chat.stdin.write("/help\n")
        chat.stdin.flush()
        assert chat.stdout.readline()
        chat.terminate()
        _, said = chat.communicate(timeout=60)
    assert chat.returncode == 130
    assert "Traceback" not in said
