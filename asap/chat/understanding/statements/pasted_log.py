"""A training log that was pasted: its steady step is one measurement, of what runs now."""

from asap.chat.evidence.claims import Claim
from asap.chat.evidence.fact import StatedFact
from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.measured_step import MeasuredStep, steady_step
from asap.experiments.step_log import StepLog
from asap.study.study import Study

_WORDS = 200


def logged_step(text: str, study: Study) -> tuple[StatedFact | None, str]:
    """The step time that a log in a text shows, and the questions beside it; ``None`` and the text without a log."""
    if "\n" not in text or study.plan is None:
        return None, text
    tokens = study.experiment.workload.tokens
    log = StepLog(tokens / study.slice.devices if tokens and study.slice else None)
    rest = [line for line in text.splitlines() if not log.feed(line)]
    found = _steady(log)
    if found is None:
        return None, text
    words = plain(f"a pasted log: {found}", _WORDS)
    fact = StatedFact(claim=Claim.STEP_TIME, plan=study.plan, value=float(f"{found.seconds:.4g}"), words=words)
    return fact, "\n".join(line for line in rest if line.rstrip().endswith("?"))


def _steady(log: StepLog) -> MeasuredStep | None:
    try:
        return steady_step(log.times, "a pasted log") if log.times else None
    except ConfigError:
        return None
