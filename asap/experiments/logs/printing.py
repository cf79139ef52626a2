"""What prints a run's settings: the way out of whatever cannot be read without running it."""

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

from asap.stacks.registry import specs

_TABLE = Path(__file__).parent / "tables" / "printing.toml"
_CONFIGURATION = "or give the configuration, and this log with --step-time"


def instead_of_log(stack: str | None) -> str:
    """What to do about a log that has no settings."""
    prints = _prints(stack or "")
    prints = f"{prints}: give a log that begins there" if prints else "start the run so that it prints its settings"
    return f"{prints}, {_CONFIGURATION}"


def instead_of_script(text: str, path: Path) -> str:
    """What to do about a script that cannot be read without running it.

    Args:
        text: of the script, which tells the stack.
        path: of the file, as the user named it.
    """
    known = next((one["prints"] for one in _table().values() if any(sign in text for sign in one["signs"])), "")
    started = (one.prints for one in specs().values() if one.command and re.search(one.command.program, text))
    prints = next(started, known)
    log = f"give the log of the run ({prints})" if prints else "give the log of the run"
    return f"{log}, or asap resolve -- {_program_of(path)} {shlex.quote(str(path))}"


def _program_of(path: Path) -> str:
    """What runs a file, by its name."""
    is_makefile = path.suffix == ".mk" or path.name.casefold() in ("makefile", "gnumakefile")
    return "make -f" if is_makefile else {".py": "python", ".fish": "fish"}.get(path.suffix, "bash")


def _prints(stack: str) -> str:
    known, table = _table().get(stack), specs().get(stack)
    return known["prints"] if known else table.prints if table else ""


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))
