"""The sources of a user's training step."""

import hashlib
import importlib.util
import os
from pathlib import Path

from asap.core.errors import UsageError


def find_source(train_step: str) -> tuple[tuple[str, ...], str]:
    """Import path of a user's training step, and the SHA-256 of the sources of its package.

    Raises:
        UsageError: it is not ``package.module:function``, or there is no such module.
    """
    module, colon, name = train_step.partition(":")
    if not (module and colon and name):
        raise UsageError("must be package.module:function", where=f"--train-step {train_step}")
    here = Path.cwd()
    root = here / module.partition(".")[0]
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root.with_suffix(".py")]
    known = [file for file in files if file.is_file()]
    if not known:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            spec = None
        if spec is None or spec.origin is None:
            raise UsageError("there is no such module", where=f"--train-step {train_step}", hint=f"looked in {here}")
        known = [Path(spec.origin)]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in known)).hexdigest()
    return (str(here), *os.environ.get("PYTHONPATH", "").split(os.pathsep)), digest
