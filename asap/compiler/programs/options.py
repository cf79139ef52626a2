"""What is compiled and where: by default the reference step, by this Python on this machine."""

import hashlib
import importlib.util
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asap.compiler.programs.request import Effort
from asap.core.errors import UsageError
from asap.core.text import plain

if TYPE_CHECKING:
    from asap.mapping.language.program import Program


LOCAL_ENGINE = "local"
"""Compiles on this machine."""

PYTHON_VARIABLE = "ASAP_PYTHON"
"""Environment variable: the interpreter for what a worklog asks to be compiled again."""


@dataclass(frozen=True)
class CompileLimits:
    """Limits on one compilation.

    Args:
        seconds: it may take.
        memory_bytes: of resident host memory.
        until: reading of ``time.monotonic()`` on this machine at which it ends in any case.
    """

    seconds: float = 900.0
    memory_bytes: float = 8 * 2**30
    until: float = math.inf

    @property
    def seconds_left(self) -> float:
        """For a compilation that starts now."""
        return max(min(self.seconds, self.until - time.monotonic()), 0.0)


DEFAULT_LIMITS = CompileLimits()


@dataclass(frozen=True)
class CompileOptions:
    """Whose training step is compiled, and how.

    Args:
        train_step: ``package.module:function``, called with a mesh that names all axes; it returns the jitted
            function and the tuple of its abstract arguments, with shardings. The reference step by default.
        maxtext: MaxText's own step instead, with the settings on record.
        python: the interpreter where MaxText or the user's step is installed; this one by default.
        effort: of the compiler. ``least`` gives HBM and collectives, but no step time.
        engine: ``local`` or ``ray://HOST:PORT``.
        limits: on time and memory of each compilation.
        flags: of the TPU compiler, added to those of the run: ``--name=value``; the last of a name counts.
        mapping: a checked mapping program that the step is compiled under; of it a user's own step gets the mesh.

    Raises:
        UsageError: ``maxtext`` is given with ``train_step`` or ``mapping``, or a flag is none.
    """

    train_step: str | None = None
    maxtext: bool = False
    python: str = ""
    effort: Effort = "full"
    engine: str = LOCAL_ENGINE
    limits: CompileLimits = DEFAULT_LIMITS
    flags: tuple[str, ...] = ()
    mapping: "Program | None" = None

    def __post_init__(self) -> None:
        if self.train_step and self.maxtext:
            raise UsageError("--maxtext and --train-step are mutually exclusive")
        if strays := [flag for flag in self.flags if not flag.startswith("--")]:
            raise UsageError(f"{plain(strays[0], 60)} is no flag", where="--flags", hint="write --name=value")
        if self.mapping and self.maxtext:
            hint = "asap map explain prints the logical_axis_rules that MaxText takes"
            raise UsageError("--mapping is for the reference step and --train-step, not for --maxtext", hint=hint)

    @property
    def is_reference(self) -> bool:
        """Whether the program is the reference step."""
        return self.train_step is None and not self.maxtext

    def to_record(self) -> dict[str, Any]:
        """The step and the effort, for a worklog. Interpreter and engine belong to the machine and are left out."""
        return {"train_step": self.train_step, "maxtext": self.maxtext, "effort": self.effort}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "CompileOptions":
        """The options on record; those of the reference step where a worklog has none.

        An interpreter named in a worklog is never run: it is the one that ``ASAP_PYTHON`` names, or this one.
        """
        return cls(
            train_step=record.get("train_step"),
            maxtext=record.get("maxtext", False),
            python=os.environ.get(PYTHON_VARIABLE, ""),
            effort=record.get("effort", "full"),
        )


REFERENCE_STEP = CompileOptions()


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
