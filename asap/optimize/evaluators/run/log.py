"""The log of a try, read as it grows, and why the try died. Its text is somebody else's: quoted, cut, never obeyed."""

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from asap.core.feedback import Feedback
from asap.core.text import plain
from asap.experiments.logs.endings import ending_of
from asap.experiments.logs.formats import statements, table
from asap.experiments.logs.measured import LONGEST_LINE, StepFeed
from asap.experiments.logs.scan import scan_text
from asap.experiments.logs.text import clean
from asap.optimize.outcome import Code, Status, feedback

_MODE = "activation_checkpoint.mode"
_NAMES = {"recompute": _MODE} | {
    field: f"{section}.{name}"
    for section in ("training", "parallelism")
    for name, field in table("renamed")[f"torchtitan_{section}"].items()
}
"""torchtitan's settings by what the tables of logs call them."""
_DEGREE = re.compile(r"\b([a-z_]{2,12})=(\d{1,9})\b")
_IS_BUILT = "micro_batch"


class TorchtitanLog:
    """Reads the settings as the log says them; that nothing is recomputed it says by silence."""

    def __init__(self) -> None:
        self._recomputes = False
        self._forms = [(form.anchor.decode(), form) for form in statements() if form.stack == "torchtitan"]

    def feed(self, line: str) -> Iterator[tuple[str, str]]:
        """Names and values of the settings that ``line`` says."""
        axes = table("settings")["mesh"]
        for form in (form for anchor, form in self._forms if anchor in line):
            said = {**form.sets, **form.read(line)}
            said |= {axes[axis]: size for axis, size in _DEGREE.findall(line) if axis in axes} if form.axes else {}
            self._recomputes |= "recompute" in said
            said |= {"recompute": "none"} if _IS_BUILT in said and not self._recomputes else {}
            yield from ((_NAMES[field], value) for field, value in said.items() if field in _NAMES)


_SETTING = re.compile(
    r"(?:Config param |^\s*|[\s{,]\"?|--)([A-Za-z_][\w.]{0,80})\"?(?: ?\.{3,} ?|\s*[:=]\s*)\"?([^\s,\"{}\[\]]{1,80})"
)  # MaxText, pyconfig.py; Megatron-LM, arguments.py; torchtitan's configuration as JSON
_NOT_A_NUMBER = re.compile(r"\bloss:? *(?:nan|inf)\b", re.IGNORECASE)
_HBM = (
    (re.compile(r"\bmax reserved: ([\d.]{1,20})"), 2.0**20),  # Megatron-LM, report_memory, MB
    (re.compile(r"\bmemory: *([\d.]{1,20})GiB\("), 2.0**30),  # torchtitan
    (re.compile(r"\bTotal (?:estimated )?memory size: ([\d.]{1,20}) GB\b"), 2.0**30),  # MaxText, as compiled
)
_ENUM = re.compile(r"^[A-Z]\w*\.(?=\w+$)")
"""The class of a value of an enumeration: MaxText writes ``RematLocation.DEVICE`` for ``device``."""
_LEFT_TO_THE_LAUNCHER = "-1"
_UNSET = ("none", "false", "null", "0")
_SHOWN_AS = {"recompute_activations": ("recompute_granularity",)}
"""Options that Megatron-LM turns into others before it prints them (``arguments.py``)."""
_TAIL = 200  # lines in which the reason of a death is looked for; judgement: what is found
_CHUNK = 1 << 20  # bytes read at once
_MOST_AT_END = 32 << 20  # bytes of a backlog that is read whole; judgement: only the time
MOST_BYTES = 4 << 30
"""A log that grows beyond this is of no run that goes well. Judgement: which tries end."""


class RunLog:
    """Reads what was added since the last call; keeps what is needed and no more.

    Args:
        path: of the log.
        asked: settings that were asked for, by name.
        on_record: settings that stay as the record has them, by name.
        left_out: options that a try leaves out.
        tokens: of a device in a step.
        most_bytes: that a good log has.
    """

    def __init__(
        self, path: Path, asked: Mapping[str, str], tokens: float | None, most_bytes: int = MOST_BYTES,
        on_record: Mapping[str, str] | None = None, left_out: Iterable[str] = (),
    ):  # fmt: skip
        self._path, self._most_bytes = path, most_bytes
        self.asked = {key.casefold(): value for key, value in asked.items()}
        stays = {key.casefold(): value for key, value in (on_record or {}).items()}
        self._on_record = {key: value for key, value in stays.items() if key not in self.asked}
        self._left_out = dict.fromkeys(self._unsaid(left_out), "")
        self._seen: dict[str, list[str]] = {}
        self._offset = 0
        self._rest = b""
        self._steps = StepFeed(tokens)
        self._torchtitan = TorchtitanLog()
        self.tail: deque[str] = deque(maxlen=_TAIL)
        self.shown: dict[str, str] = {}
        self.not_a_number = False
        self.hbm_bytes: float | None = None

    @property
    def times(self) -> list[float]:
        """Seconds of each step so far."""
        return self._steps.times

    @property
    def too_long(self) -> bool:
        """Whether it is longer than that of any run that goes well; it may grow faster than it is read."""
        return self._path.stat().st_size > self._most_bytes

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read."""
        return self._path.stat().st_size > self._offset

    def read(self, to_end: bool = False) -> bool:
        """Read some of what was added; whether there was anything.

        Args:
            to_end: read all of it and the last line too, though it has no end; of very much only the last part.
        """
        grown = False
        with self._path.open("rb") as stream:
            if to_end and (size := self._path.stat().st_size) - self._offset > _MOST_AT_END:
                self._offset, self._rest = size - _CHUNK, b""
            stream.seek(self._offset)
            while chunk := stream.read(_CHUNK):
                grown = True
                self._offset += len(chunk)
                *whole, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
                self._rest = self._rest[:LONGEST_LINE]
                for line in whole:
                    self._feed(line)
                if not to_end:
                    break
        if to_end and self._rest:
            self._feed(self._rest)
            self._rest = b""
        return grown

    def ignored(self) -> dict[str, tuple[str, str]]:
        """Settings that the log shows otherwise than asked: name → asked, shown."""
        pairs = ((key, self.asked[key], shown) for key, shown in self.shown.items())
        return {key: (asked, shown) for key, asked, shown in pairs if not _same(asked, shown)}

    def kept(self) -> dict[str, str]:
        """Options that the log shows although the try leaves them out: name → shown."""
        return {key: shown for key, shown in self._left_out.items() if shown}

    def _unsaid(self, options: Iterable[str]) -> Iterator[str]:
        """Names of options that are not asked for otherwise, as the log has them."""
        for option in options:
            name = option.lstrip("-").replace("-", "_").casefold()
            yield from (key for key in (name, *_SHOWN_AS.get(name, ())) if key not in self.asked)

    def strayed(self) -> dict[str, tuple[str, str]]:
        """Settings that the log nowhere shows as the record has them: name → on record, shown."""
        pairs = ((key, self._on_record[key], shown) for key, shown in self._seen.items())
        return {key: (kept, shown[0]) for key, kept, shown in pairs if not any(_same(kept, each) for each in shown)}

    def _feed(self, raw: bytes) -> None:
        line = clean(raw[:LONGEST_LINE])
        self.tail.append(line)
        completed = self._steps.feed(line)
        if _NOT_A_NUMBER.search(line):
            self.not_a_number = True
        for pattern, unit in _HBM:
            if found := pattern.search(line):
                self.hbm_bytes = max(self.hbm_bytes or 0.0, _number(found[1]) * unit)
        if not completed and not self.times:
            for name, value in (*_SETTING.findall(line), *self._torchtitan.feed(line)):
                if (key := _named(name, self.asked)) is not None:
                    self.shown[key] = value
                elif (key := _named(name, self._left_out)) is not None:
                    self._left_out[key] = "" if value.casefold() in _UNSET else value
                elif (key := _named(name, self._on_record)) is not None:
                    self._seen.setdefault(key, []).append(value)


def _named(name: str, settings: Mapping[str, str]) -> str | None:
    """The setting that a shown name is: itself, or its last part, as in JSON with sections."""
    bare = name.casefold()
    if bare in settings:
        return bare
    ends = [key for key in settings if key.rpartition(".")[2] == bare and "." in key]
    return ends[0] if len(ends) == 1 else None


def _same(asked: str, shown: str) -> bool:
    if asked == _LEFT_TO_THE_LAUNCHER:
        return True
    try:
        return math.isclose(float(asked), float(shown))
    except ValueError:
        return asked.casefold().strip("'") == _ENUM.sub("", shown).casefold().strip("'")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


_PREEMPTED = re.compile(
    r"preempted|DUE TO PREEMPTION|DUE TO NODE FAILURE|\bEvicted\b|maintenance event|slice is unhealthy"
    r"|coordination service.*(?:unavailable|disconnected)|remote process exited or there was a network error",
    re.IGNORECASE,
)
_INVALID = re.compile(
    r"^(?:\w{1,100}\.){0,20}(?:ValueError|AssertionError|NotImplementedError|KeyError|ValidationError|ConfigError|"
    r"InvalidArgumentError|TypeError)\b.*|.*\berror: (?:unrecognized|argument|the following arguments).*"
)
_RAISED = re.compile(r"^(?:\w{1,100}\.){0,20}\w*(?:Error|Exception|Interrupt)\b.*")
_QUOTED = 200  # signs of a message
_KILLED = 137  # as shells count signals: 128 + SIGKILL
_TERMINATED = 143  # 128 + SIGTERM


def why_it_died(lines: Sequence[str], code: int | None, steps: int) -> tuple[Status, Feedback]:
    """The reason, and whether the configuration is it.

    Args:
        lines: the end of the log.
        code: of the exit; ``None`` where everything was killed.
        steps: that were completed.
    """
    text = "\n".join(lines)
    found = scan_text(text.encode("utf-8", "replace"))
    ending = ending_of(found.endings, found.steps, found.totals, {})
    if ending.kind == "out_of_memory":
        return "rejected", feedback(Code.OUT_OF_MEMORY, str(ending.model_copy(update={"before_first_step": False})))
    if code is None or _PREEMPTED.search(text):
        quoted = _last(lines, _PREEMPTED)
        gone = "the process and all around it were killed" if code is None else f"it was preempted: {quoted}"
        return "lost", feedback(Code.PREEMPTED, gone)
    if not steps and (refused := _last(lines, _INVALID)):
        return "rejected", feedback(Code.INVALID, f"the launcher refused it: {refused}")
    if code == 0:
        raised = _last(lines, _RAISED)
        short = "ended well, but its log has too few steps behind the warm-up"
        return "failed", feedback(Code.NO_STEP_TIME, f"{short}: {raised}" if raised else short if steps else None)
    quoted = _last(lines, _RAISED) or plain(next((line for line in reversed(lines) if line.strip()), ""), _QUOTED)
    reason = {_KILLED: "killed, perhaps out of host memory", _TERMINATED: "terminated by somebody else"}.get(code)
    said = f": {quoted}" if quoted else ""
    return "failed", feedback(Code.CRASHED, f"exit code {code}{f' ({reason})' if reason else ''}{said}")


def _last(lines: Sequence[str], pattern: re.Pattern[str]) -> str:
    return plain(next((line for line in reversed(lines) if pattern.search(line)), ""), _QUOTED)
