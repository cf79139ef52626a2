"""The result of an optimization: a contract for other tools (``asap.optimization/1``)."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Provenance, counted
from asap.evidence.step_belief import Result
from asap.optimize.outcome import Configuration, Cost, Try
from asap.optimize.stopping import Stopped
from asap.proposals.trials import OfferedTrial


class Best(BaseModel, frozen=True):
    """The best configuration so far, and what to paste."""

    configuration: Configuration
    step_time_s: float | None
    standard_error_s: float | None = None
    provenance: Provenance
    evidence: str = Field(description="in words")
    saves: float | None = Field(default=None, description="share of the step time of what runs now; null: unknown")
    saves_low: float | None = Field(default=None, description="lower end of the 90 % interval of what it saves")
    saves_high: float | None = None
    lines: tuple[str, ...] = Field(description="for the launcher; empty: it is what runs now")


class OptimizationReport(BaseModel):
    """Every try, the best, why it ended, and what was spent."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["asap.optimization/1"] = Field(default="asap.optimization/1", alias="schema")
    experiment: str
    session: str | None = Field(default=None, description="null where nothing was evaluated but by the model")
    evaluator: str
    considered: int | None = Field(default=None, description="configurations beside the present one that can run")
    tries: tuple[Try, ...]
    best: Best | None = Field(description="null: nothing that was tried runs")
    stopped: Stopped | None = Field(description="null: it goes on")
    spent: Cost
    learnt: tuple[str, ...] = ()
    trials: tuple[OfferedTrial, ...] = Field(default=(), description="settings that no search varies, to test")


def spent_on(tries: Sequence[Try]) -> Cost:
    """The cost of all tries together."""
    costs = [each.cost for each in tries if each.cost is not None]
    money = [cost.money for cost in costs if cost.money is not None]
    return Cost(
        seconds=sum(cost.seconds for cost in costs), chip_hours=sum(cost.chip_hours for cost in costs),
        money=sum(money) if money else None, currency=next((cost.currency for cost in costs if cost.currency), None),
    )  # fmt: skip


def best_measured(
    tries: Sequence[Try], believed: Sequence[Result], known: Sequence[Result], now: Configuration | None,
    lines: Callable[[Configuration], str],
) -> Best | None:  # fmt: skip
    """The fastest of tries and of what was measured before, with the line to paste.

    Args:
        tries: of the session.
        believed: of each configuration that was timed, what is believed of it, fastest first.
        known: results from before the session.
        now: the configuration that runs now.
        lines: what to paste for a configuration.
    """
    if not believed:
        return None
    found = believed[0]
    before = next((result for result in known if result.configuration == now), None)
    present = next((result for result in believed if result.configuration == now), None)
    if present is not None and present.step_time_s <= found.step_time_s:
        found = present
    timed = [each.outcome for each in tries if each.outcome and each.configuration == found.configuration]
    first = next((outcome for outcome in timed if outcome.step_time_s), None)
    steps = sum(outcome.steps or 0 for outcome in timed)
    measured = f"{counted(steps, 'step')} in {counted(found.tries, 'run')}"
    on_record = before is not None and found.configuration == before.configuration
    evidence = measured if steps else "the record" if on_record else "the compiler"
    evidence += ", with reduced effort: the step may be shorter" if found.at_most else ""
    kept = found.configuration == now
    comparable = present if present and not present.at_most else None
    low, high = _interval(found, comparable) if comparable and not kept else (None, None)
    return Best(
        configuration=found.configuration, step_time_s=found.step_time_s,
        standard_error_s=found.standard_error_s or None,
        provenance=first.provenance if first else Provenance.MEASURED,
        evidence=f"it is what runs now; {evidence}" if kept else evidence,
        saves=1 - found.step_time_s / comparable.step_time_s if comparable else None, saves_low=low, saves_high=high,
        lines=() if kept else tuple(lines(found.configuration).splitlines()),
    )  # fmt: skip


def _interval(found: Result, present: Result) -> tuple[float | None, float | None]:
    """At 90 %, of the share of the present step that another saves; none where nothing varies."""
    error = math.hypot(found.log_error, present.log_error)
    if not error:
        return None, None
    half, ratio = error * max(found.half, present.half), found.step_time_s / present.step_time_s
    return 1 - ratio * math.exp(half), 1 - ratio * math.exp(-half)
