"""An optimization for people: every try in a line, what was learnt, and the best so far with what to paste."""

import textwrap
from collections.abc import Container, Iterable

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from asap.core.feedback import Feedback
from asap.core.text import plain, plain_lines
from asap.core.units import (
    Provenance,
    counted,
    format_bytes,
    format_change,
    format_percent,
    format_seconds,
    significant,
)
from asap.optimize.outcome import Code, Outcome, Try
from asap.optimize.report import Best, OptimizationReport
from asap.optimize.results import RunNoise, noise_of
from asap.optimize.stopping import Worth
from asap.proposals.trials import OfferedTrial

_STYLES = {"done": "", "rejected": "yellow", "failed": "red", "lost": "dim"}


def print_report(report: OptimizationReport, console: Console) -> None:
    """All of it; what is to be pasted on lines that nothing breaks."""
    for part in _parts(report):
        console.print(part, soft_wrap=isinstance(part, Text))


def rendered(report: OptimizationReport, note: str = "") -> RenderableType:
    """The table, the best and why it ended; ``note`` while it runs."""
    return Group(*_parts(report), *([Text(plain(note), style="cyan")] if note else []))


def _parts(report: OptimizationReport) -> list[RenderableType]:
    parts: list[RenderableType] = [tries_table(report.tries)]
    parts += [Text(f"· {', '.join(map(str, numbers))}: {said}") for said, numbers in _repeated(report.tries).items()]
    parts += [Text(f"· {plain(line)}") for line in dict.fromkeys(report.learnt)]
    if report.best is not None:
        parts += ["", *_best(report.best)]
    if report.trials:
        parts += [Text("worth a test:"), *(part for trial in report.trials for part in _trial(trial))]
    if report.stopped is not None:
        parts.append(Text(plain(report.stopped.statement)))
    if report.spent.seconds:
        parts.append(Text(f"spent: {_spent(report)}", style="dim"))
    if report.session is not None:
        parts.append(Text(f"session {plain(report.session)}", style="dim"))
    return parts


def tries_table(tries: Iterable[Try]) -> Table:
    """One line for each try, against the first that ran; what was predicted, where it was evaluated by something else
    than the model. What several tries say stands below the table."""
    tries = list(tries)
    below, noise = _repeated(tries), noise_of(tries)
    first = next((each for each in tries if _comparable(each)), None)
    modelled = all(each.outcome and each.outcome.provenance == Provenance.MODELLED for each in tries)
    against = f"against {first.number}" if first else "against the first"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    for column in ("#", "configuration", "why", *([] if modelled else ["predicted"]), "outcome", against):
        table.add_column(column, overflow="fold")
    for each in tries:
        style = _STYLES[each.outcome.status] if each.outcome else "cyan"
        predicted = [] if modelled else [_predicted(each)]
        found = (_outcome(each.outcome, below, noise), _against(each, first))
        cells = (each.number, each.configuration, each.why, *predicted, *found)
        table.add_row(*(Text(plain(cell), style=style) for cell in cells))
    return table


def line_of(each: Try, tries: Iterable[Try] = ()) -> str:
    """A try in one line, for a pipe; ``±`` by how much runs of the ``tries`` so far differ."""
    outcome = _outcome(each.outcome, (), noise_of(tries or [each]))
    return f"{each.number}: {plain(each.configuration)}: {outcome} ({plain(each.why)})"


def worth_in_words(worth: Worth) -> str:
    """``may save 3.2 % of a step, 120 chip-hours in all, and costs 2.1 chip-hours``."""
    parts = [f"may save {format_percent(worth.saving_share)} of a step"] if worth.saving_share is not None else []
    parts += [f"{significant(worth.saving_chip_hours)} chip-hours in all"] if worth.saving_chip_hours else []
    cost = worth.cost
    price = f", {significant(cost.money)} {plain(cost.currency or '')}" if cost.money is not None else ""
    parts += [f"costs about {significant(cost.chip_hours)} chip-hours{price}"] if cost.chip_hours else []
    return ", ".join(parts)


def _comparable(each: Try) -> float | None:
    """The step time of a try that ran, unless it was compiled with reduced effort."""
    outcome = each.outcome
    done = outcome and outcome.status == "done" and Code.REDUCED_EFFORT not in outcome.codes
    return outcome.step_time_s if outcome and done else None


def _against(each: Try, first: Try | None) -> str:
    time, before = _comparable(each), first and _comparable(first)
    return format_change(time / before) if time and before and each is not first else ""


def _predicted(each: Try) -> str:
    step = each.predicted.step_time_s
    return format_seconds(step) if step else ""


def _repeated(tries: Iterable[Try]) -> dict[str, list[int]]:
    """What several tries that ran say in the same words → their numbers."""
    said: dict[str, list[int]] = {}
    for each in tries:
        for feedback in each.outcome.feedback if each.outcome and each.outcome.status == "done" else ():
            said.setdefault(_said(feedback), []).append(each.number)
    return {words: numbers for words, numbers in said.items() if len(numbers) > 1}


def _said(feedback: Feedback) -> str:
    return plain(feedback.explanation, 160)


def _outcome(outcome: Outcome | None, below: Container[str], noise: RunNoise) -> str:
    if outcome is None:
        return "running"
    parts = []
    if outcome.status == "done" and outcome.step_time_s:
        error = outcome.standard_error_s or 0.0
        error = noise.half * max(error, noise.deviation * outcome.step_time_s) if error else 0.0
        at_most = "at most " if Code.REDUCED_EFFORT in outcome.codes else ""
        parts.append(at_most + format_seconds(outcome.step_time_s) + (f" ± {format_seconds(error)}" if error else ""))
    if outcome.hbm_bytes:
        parts.append(f"{format_bytes(outcome.hbm_bytes)} HBM")
    parts += [said for said in map(_said, outcome.feedback) if said not in below]
    return "; ".join(parts) or outcome.status


def _best(best: Best) -> Iterable[RenderableType]:
    time = f", {format_seconds(best.step_time_s)} a step" if best.step_time_s else ""
    saves = f", {format_percent(best.saves)} less than what runs now" if best.saves and best.saves > 0 else ""
    if saves and best.saves_low is not None and best.saves_high is not None:
        saves += f" ({format_percent(best.saves_low)} to {format_percent(best.saves_high)} at 90 %)"
    yield Text(
        f"best: {plain(best.configuration)}{time}{saves} ({best.provenance.value}: {plain(best.evidence)})",
        style="bold",
    )
    if best.lines:
        yield Text("paste:")
        yield from (Text(textwrap.indent(plain_lines(line), "  "), style="green") for line in best.lines)


def _trial(trial: OfferedTrial) -> Iterable[RenderableType]:
    yield Text(f"· {plain(trial.statement)}")
    yield Text(textwrap.indent(plain_lines(trial.line), "  "), style="green")


def _spent(report: OptimizationReport) -> str:
    spent = report.spent
    parts = [counted(len(report.tries), "evaluation"), format_seconds(spent.seconds)]
    parts += [f"{significant(spent.chip_hours)} chip-hours"] if spent.chip_hours else []
    parts += [f"{significant(spent.money)} {plain(spent.currency or '')}"] if spent.money is not None else []
    return ", ".join(parts)
