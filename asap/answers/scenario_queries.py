"""Queries on supposed runs: what if, a sweep, the largest batch, the fewest chips, what reaches a figure."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from asap.answers.figure import Answer, Figure, Part, PlanName, Query, change
from asap.answers.inquiry import Inquiry
from asap.answers.plan_row import PlanRow, notes_of, plan_row, step_over
from asap.answers.scenario import Change, Supposed, batch_on, kept_batch, suppose
from asap.core.errors import AsapError, InsufficientEvidenceError, PlanError, UsageError
from asap.core.numbers import digits
from asap.core.units import Quantity, exact, format_seconds
from asap.plans import Plan
from asap.plans.axes import Axis
from asap.plans.degrees import set_degree
from asap.plans.plan import SETTINGS
from asap.prediction.prediction import Prediction
from asap.proposals.launch import why_not_launched
from asap.proposals.selection.candidate import fits
from asap.study.study import Study

_OF_RUN = ("global_batch", "sequence_length", "hardware", "chips", "slices", "precision", "optimizer")
_MICRO_BATCH = "micro_batch"
VARIED = tuple(dict.fromkeys((*_OF_RUN, *get_args(Axis), *SETTINGS, _MICRO_BATCH)))
_WIDTHS = 12
_DOUBLINGS = 4
_SEQUENCE_STEP = 1024


class WhatIfAnswer(Answer):
    """The run as it is beside a supposed one."""

    now: PlanRow
    then: PlanRow
    run: str | None = Field(default=None, description="batch and hardware of the supposed run")
    throughput: Figure | None = Field(description="tokens per second against those of now")
    per_chip: Figure | None = Field(default=None, description="tokens per second and chip against those of now")
    notes: tuple[str, ...] = ()


class WhatIf(Change, Query):
    """Predict the run under another batch, sequence, hardware, number of chips or slices, precision or optimizer,
    several at once, each beside a plan. On other hardware the plan is scaled to it, unless one is named."""

    def answer(self, inquiry: Inquiry) -> WhatIfAnswer:
        """Both start from the measured step where there is one, as the report does."""
        if not self.changes and self.plan == "now":
            raise UsageError("nothing changes", where="what_if", hint="name a batch, a sequence, hardware, a plan, …")
        supposed = suppose(inquiry, self)
        (now,), then = inquiry.predictions([inquiry.now]), supposed.prediction()
        chips = then.plan.devices / now.plan.devices
        return WhatIfAnswer(
            now=plan_row(inquiry, now, "now"),
            then=_supposed_row(inquiry, then, f"{self.label}{supposed.settings}"),
            run=batch_on(supposed.study.experiment),
            throughput=change("then", _throughput(inquiry, supposed.study, now, then, 1), "throughput_vs_now"),
            per_chip=change(
                "then", _throughput(inquiry, supposed.study, now, then, chips), "throughput_per_chip_vs_now"
            )
            if chips != 1
            else None,
            notes=(
                *_not_launched(supposed, inquiry),
                *supposed.notes,
                *kept_batch(self, inquiry, chips),
                *notes_of([then]),
            ),
        )


def _not_launched(supposed: Supposed, inquiry: Inquiry) -> tuple[str, ...]:
    """Why the run's launcher would refuse the supposed run."""
    changed = supposed.plan != inquiry.study.plan and bool(supposed.study.experiment.hyperparameters)
    refused = why_not_launched(supposed.study, supposed.plan) if changed else None
    return (f"It cannot be launched: {refused}.",) if refused else ()


class SweepRow(Part):
    """One value."""

    value: str
    plan: PlanRow


class SweepAnswer(Answer):
    """One thing varied."""

    vary: str
    rows: tuple[SweepRow, ...]
    not_predicted: tuple[str, ...] = ()


class Sweep(Query):
    """Predict the run with one thing varied over several values: step time, throughput, HBM and fit of each."""

    vary: str = Field(
        max_length=40,
        description="global_batch, sequence_length, hardware, chips, slices, precision, optimizer; an axis (replica, "
        "data, seq, model, expert, stage), whose difference FSDP takes; or a setting of a plan: remat, microbatches, …",
    )
    values: Annotated[
        tuple[Annotated[str, Field(max_length=60)], ...],
        Field(min_length=1, max_length=12, description="such as 128, 256, 512; full, minimal; v5e-128, v5e-256"),
    ]
    plan: PlanName = "now"

    def answer(self, inquiry: Inquiry) -> SweepAnswer:
        """Each value by the model alone where the run changes."""
        if self.vary not in VARIED:
            raise UsageError("cannot be varied", where=self.vary, hint=f"one of {', '.join(VARIED)}")
        rows, refused = list[SweepRow](), list[str]()
        for value in self.values:
            try:
                rows.append(self._row(inquiry, value))
            except AsapError as error:
                refused.append(f"{value}: {error.message}")
        return SweepAnswer(vary=self.vary, rows=tuple(rows), not_predicted=tuple(refused))

    def _row(self, inquiry: Inquiry, value: str) -> SweepRow:
        found, supposed = self._predict(inquiry, value), self.vary in _OF_RUN
        row = _supposed_row(inquiry, found, f",{self.vary}={value}") if supposed else plan_row(inquiry, found)
        return SweepRow(value=value, plan=row)

    def _predict(self, inquiry: Inquiry, value: str) -> Prediction:
        if self.vary in _OF_RUN:
            known = value if self.vary in ("hardware", "precision", "optimizer") else digits(value)
            if known is None:
                raise UsageError("is no number", where=value)
            return suppose(inquiry, Change.model_validate({"plan": self.plan, self.vary: known})).prediction()
        base = inquiry.plan(self.plan)
        if self.vary == _MICRO_BATCH:
            return inquiry.predictions([inquiry.plan(f"{base} {_MICRO_BATCH}={value}")])[0]
        if self.vary in get_args(Axis):
            plan = inquiry.study.keep_micro_batch(set_degree(base, self.vary, digits(value) or 0))
        else:
            plan = base.model_copy(update={self.vary: getattr(Plan.parse(f"{self.vary}={value}"), self.vary)})
        return inquiry.predictions([inquiry.plan(str(plan))])[0]


class SolveAnswer(Answer):
    """What reaches a goal."""

    find: str
    found: str | None = Field(description="the value, or None where nothing reaches it")
    plan: PlanRow | None
    next_one: str | None = Field(default=None, description="the next value, which does not")
    searched: str = Field(description="what was searched")


Goal = Literal["batch", "sequence", "microbatch", "chips", "step_time", "mfu"]


class Solve(Query):
    """Find the largest batch, sequence or microbatch with which a plan fits, the fewest chips on which the run fits, or
    a configuration that reaches a step time (s) or an MFU (fraction)."""

    find: Goal
    plan: PlanName = "now"
    target: float | None = Field(
        default=None, gt=0, description="of step_time and chips in seconds a step, of mfu as a fraction"
    )

    def answer(self, inquiry: Inquiry) -> SolveAnswer:
        """The best that the model finds."""
        if self.find == "chips":
            return _fewest_chips(inquiry, self)
        if self.find in ("step_time", "mfu"):
            return _reaching(inquiry, self.find, self.target)
        return _largest(inquiry, self)


def _largest(inquiry: Inquiry, query: Solve) -> SolveAnswer:
    plan, workload = inquiry.plan(query.plan), inquiry.study.experiment.workload
    if query.find == "microbatch":
        return _largest_microbatch(inquiry, query, plan)
    on_record = workload.sequence_length if query.find == "sequence" else workload.global_batch
    if on_record is None:
        raise InsufficientEvidenceError(
            f"the {query.find} is not on record", where=inquiry.id, hint="--batch, --sequence"
        )
    field = "sequence_length" if query.find == "sequence" else "global_batch"
    step = _SEQUENCE_STEP if query.find == "sequence" else plan.batch_shards * (plan.microbatches or 1)
    fitting, found, width = 0, None, 2**_WIDTHS
    while width:
        there = _fits_with(inquiry, query.plan, field, (fitting + width) * step)
        if there is not None:
            fitting, found = fitting + width, there
        width //= 2
    return SolveAnswer(
        find=query.find,
        found=f"{fitting * step:,}" if found else None,
        plan=_supposed_row(inquiry, found, f",{field}={fitting * step}") if found else None,
        next_one=f"{(fitting + 1) * step:,}",
        searched=f"multiples of {step:,}, now {on_record:,}" + ("; microbatches stay" if plan.microbatches else ""),
    )


def _largest_microbatch(inquiry: Inquiry, query: Solve, plan: Plan) -> SolveAnswer:
    batch = inquiry.study.experiment.workload.global_batch
    if batch is None:
        raise InsufficientEvidenceError("the batch is not on record", where=inquiry.id, hint="--batch")
    each, next_one = max(batch // plan.batch_shards, 1), None
    for size in (size for size in range(each, 0, -1) if each % size == 0):
        try:
            (found,) = inquiry.predictions([inquiry.plan(f"{plan.model_copy(update={'microbatches': each // size})}")])
        except PlanError:
            continue
        if found.memory is not None and found.memory.verdict == "fits":
            return SolveAnswer(
                find=query.find, found=f"{size} (microbatches={each // size})", plan=plan_row(inquiry, found),
                next_one=next_one, searched=f"sizes that divide the {each} sequences of a data rank; the batch stays",
            )  # fmt: skip
        next_one = str(size)
    return SolveAnswer(find=query.find, found=None, plan=None, searched=f"sizes that divide {each}")


def _fits_with(inquiry: Inquiry, plan: str, field: str, value: int) -> Prediction | None:
    try:
        change = Change.model_validate({"plan": plan, field: value})
        found = suppose(inquiry, change, accumulates=False).prediction()
    except PlanError:
        return None
    if found.memory is None:
        raise InsufficientEvidenceError("HBM cannot be predicted", where=inquiry.id, hint="give the architecture")
    return found if found.memory.verdict == "fits" else None


def _fewest_chips(inquiry: Inquiry, query: Solve) -> SolveAnswer:
    """Of any plan that fits and needs no longer than the target, halved or doubled from now, the batch as it is."""
    now = inquiry.now.devices
    best, count, next_one = _best_on(inquiry, now, query.target), now, None
    for other in _counts(now, smaller=best is not None):
        there = _best_on(inquiry, other, query.target)
        if best is not None and there is None:
            next_one = other
            break
        best, count = there, other
        if next_one is None and there is not None and other > now:
            next_one = other // 2
            break
    limit = "" if query.target is None else f" with a step of at most {format_seconds(query.target)}"
    limit += "" if best else ", none of which is enough"
    return SolveAnswer(
        find=query.find,
        found=str(count) if best else None,
        plan=_supposed_row(inquiry, best, f",chips={count}") if best else None,
        next_one=str(next_one) if next_one else None,
        searched=f"halved or doubled from {now}, any plan{limit}; the batch stays",
    )


def _counts(now: int, *, smaller: bool) -> Iterator[int]:
    if smaller:
        yield from (now // 2**power for power in range(1, now.bit_length()))
    else:
        yield from (now * 2**power for power in range(1, _DOUBLINGS + 1))


def _best_on(inquiry: Inquiry, chips: int, target: float | None) -> Prediction | None:
    try:
        study = inquiry.study if chips == inquiry.now.devices else suppose(inquiry, Change(chips=chips)).study
        ranked = inquiry.with_study(study).ranking
    except AsapError:
        return None
    found = [one.prediction for one in ranked.candidates if one.prediction.memory]
    found += [ranked.incumbent] if ranked.incumbent else []
    good = (one for one in found if fits(one) and (target is None or _reaches(one, "step_time", target)))
    return next(good, None)


def _reaching(inquiry: Inquiry, find: str, target: float | None) -> SolveAnswer:
    """The first candidate that reaches a figure, else the one that comes nearest."""
    if target is None:
        raise UsageError("needs a target", where=f"solve {find}", hint=f"solve {find} target=…")
    known = [one.prediction for one in inquiry.candidates if fits(one.prediction)]
    known = [one for one in known if (one.step_time if find == "step_time" else one.mfu) is not None]
    good = [one for one in known if _reaches(one, find, target)]
    nearest = min(known, key=lambda one: _distance(one, find), default=None)
    shown = good[0] if good else nearest
    return SolveAnswer(
        find=f"{find} {exact(target)}",
        found=str(shown.plan) if good and shown else None,
        plan=plan_row(inquiry, shown) if shown else None,
        searched=f"{inquiry.revised.ranked.considered:,} configurations; "
        + ("what is shown is the first that reaches it" if good else "none reaches it, the nearest is shown"),
    )


def _reaches(one: Prediction, find: str, target: float) -> bool:
    return _distance(one, find) <= (target if find == "step_time" else -target)


def _distance(one: Prediction, find: str) -> float:
    if find == "step_time":
        return one.step_time.value if one.step_time else float("inf")
    return -one.mfu.value if one.mfu else float("inf")


def _supposed_row(inquiry: Inquiry, found: Prediction, label: str = "") -> PlanRow:
    """A prediction of another run: what it is against now is not that of a plan."""
    bare_prediction = found.model_copy(update={"relative_step_time": None})
    return plan_row(inquiry, bare_prediction, "then", f"then[{str(found.plan).replace(' ', ',')}{label}]")


def _throughput(inquiry: Inquiry, supposed: Study, now: Prediction, then: Prediction, chips: float) -> Quantity | None:
    """Tokens per second over those of now, with the interval of the change; on other hardware that of the new run."""
    before, after = now.tokens_per_second, then.tokens_per_second
    if before is None or after is None:
        return None
    by, step = before.value * chips, step_over(inquiry, now, then) if inquiry.study.slice == supposed.slice else None
    ends = {end: at / by for end in ("value", "low", "high") if (at := getattr(after, end)) is not None}
    if step is not None and step.high is not None:
        ends |= {"low": ends["value"] * step.value / step.high, "high": ends["value"] * step.high / step.value}
    return after.model_copy(update=ends)
