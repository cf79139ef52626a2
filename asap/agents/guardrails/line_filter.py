"""Shows a model's answer line by line, each once it is complete and every figure in it resolves.

From the first line that does not, the rest is withheld, so that the model can rewrite it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from asap.agents.guardrails.complaints import Complaint, complaints, remove_unverified
from asap.agents.guardrails.transcript import Transcript
from asap.core.secrets import redacted
from asap.core.text import plain


@dataclass
class LineFilter:
    """One answer on its way to the screen.

    Args:
        transcript: answers of the tools.
        instructions: texts of the agents that must not be repeated.
        show: prints a line.
    """

    transcript: Transcript
    instructions: tuple[str, ...]
    show: Callable[[str], None]
    shown: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    _open: str = ""

    def write(self, piece: str) -> None:
        """Take the next piece of the answer."""
        *lines, self._open = (self._open + piece).split("\n")
        for line in lines:
            self._line(line)

    def flush(self) -> None:
        """The answer, or its part before a tool call, is complete."""
        if self._open:
            self._line(self._open)
        self._open = ""

    def reset(self) -> None:
        """Drop what was withheld: the model writes it again."""
        self.withheld, self.complaints, self._open = [], [], ""

    def release(self) -> None:
        """Show what was withheld, without what does not resolve."""
        for line in self.withheld:
            self._emit(remove_unverified(line, self.transcript, self.instructions))

    def _line(self, line: str) -> None:
        line = line[: len(line) - len(line.lstrip(" "))] + plain(redacted(line))
        self.complaints += complaints("this line", line, self.transcript, self.instructions)
        if self.complaints:
            self.withheld.append(line)
        else:
            self._emit(line)

    def _emit(self, line: str) -> None:
        self.shown.append(line)
        self.show(f"{line}\n")
