"""Queries on tests: settings to try, what a test is worth, what to test next, what the compiler says."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from asap.answers.figure import Answer, Figure, Lines, Part, PlanName, Query, bare, change, figure, subject_of
from asap.answers.inquiry import Inquiry
from asap.answers.plan_row import PlanRow, plan_row
from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.core.units import GIB, Provenance
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.evidence.fact import EXCLUDING_CLAIMS, Claim, StatedFact
from asap.evidence.judgement import HIGHEST_PUBLISHED_MFU, MOST_MFU, mfu_of_step
from asap.evidence.readings import run_of
from asap.proposals.launch import overrides_of
from asap.proposals.selection.candidate import Candidate
from asap.proposals.test_worth import worth_of_test
from asap.proposals.trials import trials_of

BUDGET = 3
"""Plans that one session may have compiled by a query: each takes minutes."""
SECONDS = 300.0
MEMORY = 8 * GIB


class SettingRow(Part):
    """A setting that no search varies."""

    setting: str
    name: str = Field(description="by which what_if takes it")
    vs_now: Figure | None = Field(default=None, description="change of the step time, where it is modelled")
    hbm_saved: Figure | None = Field(default=None, description="HBM of a device that it saves, where it is modelled")
    line: str
    why: str
    source: str


class SettingsAnswer(Answer):
    """Settings beside every plan that are worth a test."""

    lines: Lines
    settings: tuple[SettingRow, ...] = ()


class Settings(Query):
    """List the settings beside every plan that are worth a test in this run: what each is expected to bring, and the
    line to paste."""

    def answer(self, inquiry: Inquiry) -> SettingsAnswer:
        """The most promising first."""
        rows = tuple(
            SettingRow(
                setting=one.title, name=one.name, line=one.line, why=one.statement, source=(said_by := one.source),
                vs_now=change(one.name, one.relative_step_time),
                hbm_saved=bare(one.name, "hbm_saved", one.saved_bytes or None, "bytes", said_by, Provenance.MODELLED),
            )
            for one in trials_of(inquiry.study)
        )  # fmt: skip
        return SettingsAnswer(lines=tuple(line for row in rows for line in row.line.splitlines()), settings=rows)


class WorthAnswer(Answer):
    """A test of one plan against what it may save."""

    verdict: Literal["worth it", "not worth it", "depends on the steps to go"]
    plan: str
    saves: Figure | None = Field(description="expected over the steps to go, the plan kept only if it is faster")
    cost: Figure | None = Field(description="of the test's steps")
    pays_after: Figure | None = Field(description="steps to go from which on the test pays")
    money: Figure | None = Field(default=None, description="what is saved, less the test")
    currency: str | None = None
    test_steps: int
    not_stated: tuple[str, ...] = Field(default=(), description="what says how much is saved, and in money")


_ANY_STEPS = 1_000_000
"""Steps over which the saving of one is computed where those to go are not known."""


class Worth(Query):
    """Say what a short test of a plan is worth: chip-hours that it takes, chip-hours and money that it is expected to
    save over the steps still to be trained."""

    plan: PlanName = "1"
    steps_to_go: Annotated[int, Field(ge=1)] | None = Field(default=None, description="steps still to be trained")
    price: Annotated[float, Field(gt=0)] | None = Field(default=None, description="of a chip-hour")
    currency: Annotated[str, Field(max_length=8)] | None = None

    def answer(self, inquiry: Inquiry) -> WorthAnswer:
        """By the interval of the prediction."""
        study, plan = inquiry.study, inquiry.plan(self.plan)
        to_go = self.steps_to_go or study.preferences.steps_to_go
        preferences = replace(study.preferences, steps_to_go=to_go or _ANY_STEPS)
        if self.price is not None and study.chip is not None:
            named = self.currency or preferences.currency
            preferences = replace(
                preferences, prices={**preferences.prices, study.chip.name: self.price}, currency=named
            )
        (found,), now = inquiry.predictions([plan]), inquiry.incumbent
        step = now.step_time if now else None
        worth = worth_of_test(replace(study, preferences=preferences), step, found.relative_step_time, found.step_time)
        if worth is None:
            raise InsufficientEvidenceError(
                "a step time of both plans and the hardware have to be known", where=inquiry.id, hint="--step-time"
            )
        of, source = subject_of(plan, study.plan), "interval of the prediction"

        def hours(name: str, value: float) -> Figure | None:
            return bare(of, name, value, "chip-hours", source, Provenance.MODELLED)

        rate = worth.expected_saving / max(worth.steps_to_go - worth.steps, 1)
        pays = worth.steps + worth.chip_hours / rate if rate > 0 else None
        said = "worth it" if worth.worth_it else "not worth it"
        return WorthAnswer(
            verdict=said if to_go or pays is None else "depends on the steps to go",
            plan=str(plan),
            saves=hours("expected_saving", worth.expected_saving) if to_go else None,
            cost=hours("test_cost", worth.chip_hours),
            pays_after=bare(of, "pays_after", pays, "steps", source, Provenance.MODELLED),
            money=bare(
                of, "money", worth.money if to_go else None, worth.currency or "USD", source, Provenance.MODELLED
            ),
            currency=worth.currency,
            test_steps=worth.steps,
            not_stated=(*(() if to_go else ("--steps N",)), *(() if worth.currency else ("--price P a chip-hour",))),
        )


class OutcomeRow(Part):
    """What was found of a plan that was tried."""

    plan: str
    fact: str
    measured: Figure | None = None


class NextTestAnswer(Answer):
    """What to test next."""

    test: str | None = Field(
        description="the plan or setting; None where none is worth a test, where the measured step has to be explained"
        " first, or where the advice is a change beside both"
    )
    check: str | None = Field(default=None, description="what to find out before any plan is tested")
    line: Lines
    plan: PlanRow | None
    best: PlanRow | None = Field(default=None, description="the fastest that was measured")
    tried: tuple[OutcomeRow, ...] = ()
    advice: str | None = Field(default=None, description="of the report, by all facts; it may be to keep what runs")


class NextTest(Query):
    """Say which plan to test next, after what was measured so far, with the line to paste."""

    def answer(self, inquiry: Inquiry) -> NextTestAnswer:
        """What the report advises; of proposals the first that is expected to beat what was measured by more than steps
        vary; none where what came of what runs is far from what the model expects."""
        tried, judged, said = _tried(inquiry), inquiry.judgement, inquiry.proposed
        unexplained = judged is not None and judged.is_finding
        plans = {fact.plan for fact in tried}
        best = _best(inquiry, tried)
        left = [one for one in inquiry.proposals if one.plan not in plans and not unexplained]
        chosen = next((one for one in left if best is None or 1 - _step(one) / _step(best) > STEP_TIME_VARIATION), None)
        advice = said.recommendation if said and not unexplained else None
        setting = next((one for one in said.trials if advice and one.name == advice.setting), None) if said else None
        lines = (setting.line,) if setting else advice.lines if advice else ()
        chosen = None if lines else chosen
        return NextTestAnswer(
            test=setting.title if setting else str(chosen.plan) if chosen else None,
            check=judged.causes[0].check if judged and unexplained and judged.causes else None,
            line=overrides_of(inquiry.study, chosen.plan).lines if chosen else tuple("\n".join(lines).splitlines()),
            plan=plan_row(inquiry, chosen.prediction) if chosen else None,
            best=plan_row(inquiry, best.prediction) if best else None,
            tried=tuple(
                OutcomeRow(
                    plan=str(fact.plan),
                    fact=fact.claim.value,
                    measured=bare(subject_of(fact.plan, inquiry.study.plan), "measured_step_time", fact.value, "s",
                                  fact.said_by, Provenance.STATED)
                    if fact.claim is Claim.STEP_TIME and fact.plan else None,
                )
                for fact in tried
            ),
            advice=inquiry.advice,
        )  # fmt: skip


class VerifyAnswer(Answer):
    """What the TPU compiler makes of the step under a plan."""

    plan: str
    verdict: str
    step_time: Figure | None
    collectives: tuple["CollectiveRow", ...] = ()
    notes: tuple[str, ...] = ()


class CollectiveRow(Part):
    """The collectives of one kind over the same axes."""

    kind: str
    axes: str | None
    count: int
    moved: Figure | None


class Verify(Query):
    """Compile the training step under one plan with the real TPU compiler: does it fit, which collectives. Takes
    minutes, and a session has three of them: ask for it where a prediction decides and is in doubt."""

    plan: PlanName = "1"

    def answer(self, inquiry: Inquiry) -> VerifyAnswer:
        """The compiler's verdict."""
        from asap.compiler.programs.options import CompileLimits, CompileOptions
        from asap.compiler.verify import verify

        plan, study = inquiry.plan(self.plan), inquiry.study
        if inquiry.compiled >= BUDGET:
            raise UsageError(f"{BUDGET} plans were compiled in this session, no more are allowed", where="verify")
        inquiry.compiled += 1
        (found,) = verify(study.experiment, [plan], CompileOptions(limits=CompileLimits(SECONDS, MEMORY)))
        of, by, kind = subject_of(plan, study.plan), "the TPU compiler", Provenance.COMPILED
        return VerifyAnswer(
            plan=str(found.plan),
            verdict=found.verdict,
            step_time=figure(of, "compiled_step_time", found.calibrated_step_time or found.step_time),
            collectives=tuple(
                CollectiveRow(
                    kind=row.kind, axes=str(row.axes) if row.axes else None, count=round(row.count),
                    moved=bare(of, f"compiled.{row.kind}", row.size_bytes, "bytes", by, kind),
                )
                for row in found.collectives
            ),
            notes=(*found.differences, *found.notes),
        )  # fmt: skip


Metric = Literal["step_time", "mfu", "throughput"]


class PlausibleAnswer(Answer):
    """Whether a figure can be of a plan."""

    verdict: Literal["as expected", "better than expected", "worse than expected", "not possible", "not known"]
    said: Figure | None
    expected: Figure | None
    mfu: Figure | None = Field(description="that it amounts to")
    published: Figure | None = Field(description="the highest MFU of any published run")
    plan: str


class Plausible(Query):
    """Judge a figure that somebody names, without recording it: a step time (s), an MFU (fraction) or a throughput
    (tokens per second of the job), beside what is expected of a plan and the best of any published run."""

    metric: Metric
    value: Annotated[float, Field(gt=0)]
    plan: PlanName = "now"

    def answer(self, inquiry: Inquiry) -> PlausibleAnswer:
        """Beside the model alone."""
        study, plan = inquiry.study, inquiry.plan(self.plan)
        seconds = self._seconds(inquiry)
        (found,) = inquiry.predictions([plan])
        step = found.step_time
        if plan == study.plan and inquiry.judgement is not None and inquiry.judgement.measured_s is not None:
            step = inquiry.judgement.expected
        mfu = self.value if self.metric == "mfu" else mfu_of_step(study, seconds) if seconds else None
        verdict = "not known"
        if step is not None and seconds is not None:
            low, high = step.low or step.value, step.high or step.value
            verdict = "as expected" if low <= seconds <= high else "better than expected"
            verdict = "worse than expected" if seconds > high else verdict
        run = run_of(study)
        impossible = run is not None and seconds is not None and replace(run, plan=plan).objection(seconds) is not None
        if impossible or (mfu is not None and mfu > MOST_MFU):
            verdict = "not possible"
        of, kind, of_others = subject_of(plan, study.plan), Provenance.STATED, Provenance.PRECEDENT
        best = HIGHEST_PUBLISHED_MFU
        return PlausibleAnswer(
            verdict=verdict,
            said=bare(of, "said_step_time", seconds, "s", "asked about", kind),
            expected=figure(of, "expected_step_time", step),
            mfu=bare(of, "said_mfu", mfu, "fraction", "FLOPs of the model over the step", kind),
            published=bare("run", "highest_published_mfu", best, "fraction", "published runs", of_others),
            plan=str(plan),
        )

    def _seconds(self, inquiry: Inquiry) -> float | None:
        if self.metric == "step_time":
            return self.value
        tokens = inquiry.study.experiment.workload.tokens
        if self.metric == "throughput":
            return tokens / self.value if tokens else None
        whole = mfu_of_step(inquiry.study, 1.0)
        return whole / self.value if whole else None


def _tried(inquiry: Inquiry) -> list[StatedFact]:
    claims, now = {Claim.STEP_TIME, Claim.RELATIVE, *EXCLUDING_CLAIMS}, inquiry.study.plan
    return [fact for fact in inquiry.facts if fact.claim in claims and fact.plan is not None and fact.plan != now]


def _best(inquiry: Inquiry, tried: list[StatedFact]) -> Candidate | None:
    """The fastest plan that was measured, if it is faster than what runs now."""
    plans = {fact.plan for fact in tried if fact.claim not in EXCLUDING_CLAIMS}
    found = min((one for one in inquiry.candidates if one.plan in plans), key=_step, default=None)
    relative = found.prediction.relative_step_time if found else None
    return None if relative is not None and relative.value >= 1 else found


def _step(candidate: Candidate) -> float:
    quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
    return quantity.value if quantity else float("inf")
