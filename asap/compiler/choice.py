"""What is compiled, by whom and where: the reference step by this Python on this machine, unless the user says else."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asap.compiler.request import Effort
from asap.core.errors import UsageError

if TYPE_CHECKING:
    from asap.compiler.process import Limits

LOCAL = "local"
"""The engine that is this machine."""

PYTHON = "ASAP_PYTHON"
"""Names the Python for what a worklog asks to be compiled again."""


@dataclass(frozen=True)
class Choice:
    """Whose training step is compiled, and how.

    Args:
        train_step: ``package.module:function``, called with a mesh that names all axes; it returns the jitted
            function and the tuple of its abstract arguments, with shardings. The reference step by default.
        maxtext: MaxText's own step instead, with the settings on record.
        python: the Python where MaxText or the user's step is installed; this one by default.
        effort: of the compiler. The least says whether a plan fits and what it sends, not how long it takes.
        engine: ``local`` or ``ray://HOST:PORT``.
        limits: of time and memory of each compilation.

    Raises:
        UsageError: two steps are asked for.
    """

    train_step: str | None = None
    maxtext: bool = False
    python: str = ""
    effort: Effort = "full"
    engine: str = LOCAL
    limits: "Limits | None" = None

    def __post_init__(self) -> None:
        if self.train_step and self.maxtext:
            raise UsageError("is one step, --train-step another", where="--maxtext")

    @property
    def is_reference(self) -> bool:
        """Whether the program is the reference step."""
        return self.train_step is None and not self.maxtext

    def to_record(self) -> dict[str, Any]:
        """Whose step it was, for a worklog; by which Python and where it was compiled is the machine's business."""
        return {"train_step": self.train_step, "maxtext": self.maxtext, "effort": self.effort}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Choice":
        """The choice on record; of a worklog without one, the reference step.

        No program that a worklog names is run: the Python is the one that ``ASAP_PYTHON`` names, or this one.
        """
        return cls(
            train_step=record.get("train_step"),
            maxtext=record.get("maxtext", False),
            python=os.environ.get(PYTHON, ""),
            effort=record.get("effort", "full"),
        )


REFERENCE = Choice()
