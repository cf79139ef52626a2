"""What the command line loads before it knows what to do."""

import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("arguments", [["--help"], ["experiments", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    printed, modules = loaded(*arguments)
    assert "Usage" in printed
    assert not modules & (set(HEAVY) - BY_TYPER)
