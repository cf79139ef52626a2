"""What a model says, let through line by line: each is shown once it is whole and every figure in it resolves.

From the first line on that does not, everything is held back, so that the model can write it again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from asap.agents.guard import Complaint, Told, complaints, strike
from asap.core.text import plain, redact


@dataclass
class Gate:
    """One answer on its way to the screen.

    Args:
        told: what the tools have said.
        instructions: texts of the agents that must not be repeated.
        show: takes what may be seen.
    """

    told: Told
    instructions: tuple[str, ...]
    show: Callable[[str], None]
    shown: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    wrong: list[Complaint] = field(default_factory=list)
    _open: str = ""

    def write(self, piece: str) -> None:
        """Take the next piece of the answer."""
        *lines, self._open = (self._open + piece).split("\n")
        for line in lines:
            self._line(line)

    def end(self) -> None:
        """The answer, or a part of it before a tool is called, is whole."""
        if self._open:
            self._line(self._open)
        self._open = ""

    def again(self) -> None:
        """What was held back is to be written anew."""
        self.held, self.wrong, self._open = [], [], ""

    def strike(self) -> None:
        """Let through what was held back, without what does not resolve."""
        for line in self.held:
            self._pass(strike(line, self.told, self.instructions))

    def _line(self, line: str) -> None:
        line = line[: len(line) - len(line.lstrip(" "))] + plain(redact(line))
        self.wrong += complaints("this line", line, self.told, self.instructions)
        if self.wrong:
            self.held.append(line)
        else:
            self._pass(line)

    def _pass(self, line: str) -> None:
        self.shown.append(line)
        self.show(f"{line}\n")
