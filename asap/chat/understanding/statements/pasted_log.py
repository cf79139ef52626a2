"""A training log that was pasted or piped: its steady step is one measurement, of what runs now."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.experiments.logs.step_feed import LONGEST_LINE, StepFeed
from asap.experiments.observed import MeasuredStep
from asap.experiments.steady_steps import steady_step
from asap.study.study import Study

_WORDS = 200
_FEWEST_STEPS, _MOST_STEPS = 3, 2000
_FEWEST_RECORDS, _MOST_RECORDS = 5, 50
_DEVICE_MEMORY = re.compile(
    r"\bRESOURCE_EXHAUSTED\b|\bCUDA out of memory\b|\bHIP out of memory\b|\bOutOfMemoryError\b"
    r"|\bran out of memory in memory space hbm\b",
    re.I,
)
_OTHER_MEMORY = re.compile(r"quota|message larger|DefaultCPUAllocator|oom[- ]?kill|host memory|grpc|\?\s*$", re.I)
"""Words of a line that speaks of no memory of a device, or asks."""
_CRASH = re.compile(
    r"RESOURCE_EXHAUSTED: |out of memory\. Tried to allocate|OutOfMemoryError: |^Traceback \(most recent", re.I
)
"""Forms in which programs, and not engineers, say it."""
_ALONE = re.compile(
    r"\s*(?:[\w.]{0,60}(?:Error|Exception)\s*:\s*|\[?\w{1,20} ?\d{0,6}\s?[:\]]{1,2}\s*){0,4}"
    r"(?:RESOURCE_EXHAUSTED: |(?:CUDA|HIP) out of memory\.|[\w.]{0,60}OutOfMemoryError: )"
)
"""Begins a line of a program by itself, whatever name of an error or rank stands before it."""
_RECORD = re.compile(
    r"\s*(?:\[|[IWEF]\d{4} |\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b"
    r"|(?:rank|worker|node)[ _-]?\d+:|\d+: )"
)
"""How a line of a log begins: a bracket, the time, a level, a rank."""
_NUMBER_OF_STEP = re.compile(r"\b(?:completed step:|iteration|(?:global_)?step[:=]?)\s*(\d{1,9})\b", re.I)
_WARM_UP = 5
"""Steps of which one alone says nothing: they compile, and fill caches."""


@dataclass(frozen=True)
class PastedLog:
    """What a log shows.

    Args:
        facts: its steady step, if it has one that can be read, and whether the memory of a device ran out.
        said: what was read, a sentence.
        questions: the lines beside it that ask.
    """

    facts: tuple[StatedFact, ...]
    said: str
    questions: tuple[str, ...]


def pasted_log(text: str, study: Study) -> PastedLog | None:
    """The log that a text holds; ``None`` where it holds none, or what runs is not known."""
    lines = text.splitlines()
    if study.plan is None:
        return None
    tokens = study.experiment.workload.tokens
    log = StepFeed(tokens / study.slice.devices if tokens and study.slice else None)
    rest = [line for line in lines if not log.feed(line)]
    found = _steady(log) or _single(log, lines)
    if found is None and not log.times and not is_log(lines):
        return None
    asked = tuple(line for line in rest if line.rstrip().endswith("?") and not _RECORD.match(line))
    died = next((line for line in lines if _ran_out(line)), None)
    if found is None and died is None:
        said = "Read a log: it shows no steady step that I can read. Nothing is recorded; paste three later steps."
        return PastedLog((), said, asked)
    facts: list[StatedFact] = []
    said = "Read a log: it shows no steady step that I can read."
    if found is not None:
        alone = "" if found.steps else ", one step alone: paste more of them for its spread"
        words = plain(f"a log: {found}{alone}", _WORDS)
        facts.append(
            StatedFact(claim=Claim.STEP_TIME, plan=study.plan, value=float(f"{found.seconds:.4g}"), words=words)
        )
        said = f"Read {words}."
    if died is not None:
        words = plain(f"a log: {died.strip()}", _WORDS)
        facts.append(StatedFact(claim=Claim.OUT_OF_MEMORY, plan=study.plan, words=words))
        said = f'{said} It ran out of memory: "{plain(died.strip(), _WORDS)}".'
    return PastedLog(tuple(facts), said, asked)


def is_log(lines: Sequence[str]) -> bool:
    """Whether lines are a training log: they complete some steps, most are records, or a program ran out of memory."""
    records = sum(_RECORD.match(line) is not None for line in lines)
    dies = [line for line in lines if _ran_out(line) and _CRASH.search(line)]
    crashed = bool(dies) and (len(lines) > 1 or _ALONE.match(dies[0][:LONGEST_LINE]) is not None)
    return crashed or len(_steps(lines)) >= _FEWEST_STEPS or records >= max(_FEWEST_RECORDS, len(lines) / 2)


def condensed(lines: Sequence[str]) -> str:
    """Of a log its last steps, or records where it has none, how its memory ran out, and the questions behind them."""
    kept = _steps(lines)[-_MOST_STEPS:] or [n for n, line in enumerate(lines) if _RECORD.match(line)][-_MOST_RECORDS:]
    kept = sorted({*kept, *[n for n, line in enumerate(lines) if _ran_out(line)][:_MOST_RECORDS]})
    asked = [line for line in lines[kept[-1] + 1 :] if line.rstrip().endswith("?")] if kept else []
    return "\n".join([*(lines[index][:LONGEST_LINE] for index in kept), *asked])


def _ran_out(line: str) -> bool:
    """Whether a line of a log says that the memory of a device ran out."""
    line = line[:LONGEST_LINE]
    return _DEVICE_MEMORY.search(line) is not None and _OTHER_MEMORY.search(line) is None


def _steps(lines: Sequence[str]) -> list[int]:
    """Indices of the lines that complete a step."""
    log = StepFeed(tokens=1.0)
    return [index for index, line in enumerate(lines) if log.feed(line)]


def _steady(log: StepFeed) -> MeasuredStep | None:
    try:
        return steady_step(log.times, "a log") if log.times else None
    except ConfigError:
        return None


def _single(log: StepFeed, lines: Sequence[str]) -> MeasuredStep | None:
    """Of a step or two the last one, if its number shows that it is behind the warm-up."""
    numbers = [int(found[1]) for line in lines if (found := _NUMBER_OF_STEP.search(line[:LONGEST_LINE]))]
    if not log.times or not numbers or numbers[-1] < _WARM_UP:
        return None
    return MeasuredStep(seconds=log.times[-1], source="a log")
