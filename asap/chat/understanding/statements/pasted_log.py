"""A training log that was pasted or piped: its steady step is one measurement, of what runs now."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asap.chat.evidence.claims import Claim
from asap.chat.evidence.fact import StatedFact
from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.measured_step import MeasuredStep, steady_step
from asap.experiments.step_log import StepLog
from asap.study.study import Study

_WORDS = 200
_FEWEST_STEPS, _MOST_STEPS = 3, 2000
_FEWEST_RECORDS, _MOST_RECORDS = 5, 50
_RECORD = re.compile(
    r"\s*(?:\[|[IWEF]\d{4} |\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b"
    r"|(?:rank|worker|node)[ _-]?\d+:|\d+: )"
)
"""How a line of a log begins: a bracket, the time, a level, a rank."""


@dataclass(frozen=True)
class PastedLog:
    """What a log shows.

    Args:
        step: its steady step; ``None`` if it has none that can be read.
        said: what was read, a sentence.
        questions: the lines beside it that ask.
    """

    step: StatedFact | None
    said: str
    questions: tuple[str, ...]


def pasted_log(text: str, study: Study) -> PastedLog | None:
    """The log that a text holds; ``None`` where it holds none, or what runs is not known."""
    lines = text.splitlines()
    if len(lines) < 2 or study.plan is None:
        return None
    tokens = study.experiment.workload.tokens
    log = StepLog(tokens / study.slice.devices if tokens and study.slice else None)
    rest = [line for line in lines if not log.feed(line)]
    found = _steady(log)
    if found is None and not is_log(lines):
        return None
    asked = tuple(line for line in rest if line.rstrip().endswith("?") and not _RECORD.match(line))
    if found is None:
        said = "Read a log: it shows no steady step that I can read. Nothing is recorded."
        return PastedLog(None, said, asked)
    words = plain(f"a log: {found}", _WORDS)
    fact = StatedFact(claim=Claim.STEP_TIME, plan=study.plan, value=float(f"{found.seconds:.4g}"), words=words)
    return PastedLog(fact, f"Read {words}.", asked)


def is_log(lines: Sequence[str]) -> bool:
    """Whether lines are a training log: they complete some steps, or most of them are records."""
    records = sum(_RECORD.match(line) is not None for line in lines)
    return len(_steps(lines)) >= _FEWEST_STEPS or records >= max(_FEWEST_RECORDS, len(lines) / 2)


def condensed(lines: Sequence[str]) -> str:
    """Of a log its last steps, or records where it has none, and the questions behind them."""
    kept = _steps(lines)[-_MOST_STEPS:] or [n for n, line in enumerate(lines) if _RECORD.match(line)][-_MOST_RECORDS:]
    asked = [line for line in lines[kept[-1] + 1 :] if line.rstrip().endswith("?")] if kept else []
    return "\n".join([*(lines[index] for index in kept), *asked])


def _steps(lines: Sequence[str]) -> list[int]:
    """Indices of the lines that complete a step."""
    log = StepLog(tokens=1.0)
    return [index for index, line in enumerate(lines) if log.feed(line)]


def _steady(log: StepLog) -> MeasuredStep | None:
    try:
        return steady_step(log.times, "a log") if log.times else None
    except ConfigError:
        return None
