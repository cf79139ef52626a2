"""Programs whose HBM the compiler plans, one at a time, each in a process of its own that ends with its plan."""

import json
import multiprocessing
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from asap.compiler.programs.request import CompileRequest
from compiled_tables.hbm import ARGUMENTS, MESSAGE, needed_bytes, plan_memory

_POLL_SECONDS = 0.2


def memory_plan(request: CompileRequest) -> dict[str, Any]:
    """Bytes of one device: ``needed_bytes`` at the peak, and of that what arguments take in HBM and host memory; or
    the compiler's ``message``. With the seconds that it took."""
    begin = time.monotonic()
    with TemporaryDirectory() as name:
        folder = Path(name)
        asked = (request, folder, os.getpid())
        child = multiprocessing.get_context("spawn").Process(target=plan_memory, args=asked, daemon=True)
        child.start()
        while child.is_alive() and needed_bytes(folder) is None:
            child.join(_POLL_SECONDS)
        child.kill()
        child.join()
        row = _found(folder)
    return row | {"seconds": round(time.monotonic() - begin, 1)}


def _found(folder: Path) -> dict[str, Any]:
    arguments, message = folder / ARGUMENTS, folder / MESSAGE
    row = json.loads(arguments.read_text(encoding="utf-8")) if arguments.exists() else {}
    if needed := needed_bytes(folder):
        return row | {"needed_bytes": needed}
    return row | {"message": message.read_text(encoding="utf-8") if message.exists() else "the compiler crashed"}
