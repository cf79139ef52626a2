"""The facts of one clause: whose they are, and whether they can be of this run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asap.chat.understanding.quantities.amounts import Amount, amounts
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.references.partial_plan import filled
from asap.chat.understanding.references.references import References, references, speaks_of_baseline
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.statements.conditions import has_figure, plan_under_conditions
from asap.chat.understanding.statements.foreign import is_foreign
from asap.chat.understanding.statements.limits.alike import alike
from asap.chat.understanding.statements.limits.constraints import UNWILLING, constraints_in
from asap.chat.understanding.statements.limits.micro_batch_limit import micro_batch_limit_in
from asap.chat.understanding.statements.limits.placement_limit import placement_limit_in
from asap.chat.understanding.statements.measurements import figures_in
from asap.chat.understanding.statements.of_another_run import of_another_run, under_unnamed_degrees
from asap.chat.understanding.statements.outcomes import against_another, happened, outcome_in
from asap.chat.understanding.statements.report_subjects import is_of_what_runs, lone_subject, names_by_digit
from asap.chat.understanding.statements.run_facts import LONGEST_WORDS, run_facts
from asap.chat.understanding.words.doubt import has
from asap.chat.understanding.words.subjects import unknown_plan, unknown_subject
from asap.chat.understanding.words.voices import is_order
from asap.chat.understanding.words.wished import NEEDED, wishes_figure
from asap.core.text import plain
from asap.evidence.claims import Claim
from asap.evidence.effect import with_run_claims
from asap.evidence.fact import StatedFact
from asap.plans import Plan
from asap.plans.prose import plan_spans, without_plans
from asap.plans.validity import violations
from asap.study.study import Study, study_of

_PART = re.compile(r",\s*(?:and\s+)?|\s+and\s+", re.I)
_BARE_RESULT = re.compile(r"^\W*(?:and\s+)?\d+(?:\.\d+)?(?=\s+(?:on|for|with|under)\b)", re.I)
"""A result whose unit is that of the one before: "150 ms on 1, 140 on 2"."""
_OURS = re.compile(
    r"\b(?:we|our|ours|my|i|today|currently|now|dashboard|logs?|profiler|wandb|tensorboard|console|trace|mfu|hbm|throughput)\b",
    re.I,
)
_STEP = re.compile(r"\b(?:steps?|iter(?:ation)?s?)\b|\bs/it\b", re.I)
_OF_THE_RUN = {Claim.MFU, Claim.HBM_SHARE, Claim.HBM_BYTES, Claim.THROUGHPUT}
"""Figures that are of what runs now where no plan is named."""
_COMPARISONS = {Claim.SLOWER, Claim.FASTER, Claim.RELATIVE}
_ONE_EACH = "One measurement per sentence, please, with its plan: it is not clear which figure is whose."
_BESIDE_NOW = re.compile(r"\b(?:now|before|today|currently|was|versus|vs)\b", re.I)
"""Sets a figure of a plan beside another one."""
_ONLY_WITH_THE_BASELINE = "A plan is compared with what runs now: state the step time of each in seconds."
_SPARES = re.compile(
    r"\W*(?:(?:and|or|also|but|so|just|please)\W+)*(?:no|without|nor|keep(?:ing)?|leav(?:e|ing))\b", re.I
)
"""Begins a part that needs no verb of its own beside a constraint: "tp must stay 2, no offload"."""
_ADDS = re.compile(r"^\W*(?:(?:and|also|plus|or|oh|same)\W+)+(?:no|without|nor)(?:\s+[\w-]+){1,3}\W*$", re.I)
"""Adds something to what was ruled out: "and no cp either"."""
_BARE = re.compile(r"(?:so\W+)?(?:no|without)(?:\s+(?!needed|necessary|required|used|at\b)[\w-]+){1,3}\W*", re.I)
"""What a reason before it makes a constraint: "the host is weak, so no offloading"."""


@dataclass(frozen=True)
class Clause:
    """A part of a line that states one thing, with the plans and the amounts in it."""

    text: str
    refs: References
    amounts: tuple[Amount, ...]

    @property
    def plans(self) -> list[Plan]:
        """Whole plans that it names."""
        return [plan for plan in self.refs.plans if plan.devices > 1]


def read_clause(text: str, scene: Scene) -> Clause:
    """Find plans and amounts; raises PlanError where a plan is malformed."""
    found = amounts(blanked(text, [(start, end) for start, end, _ in plan_spans(text)]))
    tried = names_by_digit(text)
    return Clause(
        text,
        references(text, scene.tested, scene.focus, scene.study.plan, found, "all" if tried else "none"),
        tuple(found),
    )


def clause_facts(
    clause: Clause, scene: Scene, before: Sequence[StatedFact], *, imagined: bool
) -> list[StatedFact | str]:
    """What a clause states; text in place of a fact says what is missing.

    Args:
        clause: no question.
        scene: what it is read against.
        before: the facts stated so far, oldest first.
        imagined: it only supposes: words of doubt are no reason to leave it out.

    Raises:
        PlanError: a plan in it is malformed.
    """
    text, study = clause.text, scene.study
    if not imagined and (plan := plan_under_conditions(text, clause.amounts, clause.refs, study)) is not None:
        return [] if _is_no_report(text, study) else _measured(clause, scene, before, [plan])
    if not imagined:
        if (constraints := constraints_of_parts(clause, scene)) and not is_foreign(text, study):
            if has("strong", UNWILLING.sub(" ", NEEDED.sub(" ", text))):
                return []
            words = plain(text, LONGEST_WORDS)
            kept = [one.model_copy(update={"words": words}) for one in constraints]
            return [*_another_count(text, clause, study, kept), *kept]
        measured = bool(clause.refs.plans and happened(text) and any(amount.unit for amount in clause.amounts))
        wished = wishes_figure(text) and any(amount.unit for amount in clause.amounts)
        if wished or has("strong", text) or (has("weak", text) and not measured) or is_order(text):
            return []
        if is_foreign(text, study):
            return []
        if (refusal := of_another_run(text, clause.amounts, study)) is not None:
            return [refusal]
        if (question := under_unnamed_degrees(text, clause.amounts, clause.refs, study)) is not None:
            return [question]
    reported = not imagined and has_figure(clause.amounts)
    stated = run_facts(text, study, clause.refs, imagined=imagined, reported=reported)
    if not stated:
        return _measured(clause, scene, before)
    if clause.plans or not reported:
        return stated
    facts = [one for one in stated if isinstance(one, StatedFact)]
    as_stated = with_run_claims(study.experiment, facts)
    if as_stated.plan is None:
        return stated
    then = replace(scene, study=study_of(as_stated, study.profile))
    return [*stated, *_measured(clause, then, before, [as_stated.plan])]


def constraints_of_parts(clause: Clause, scene: Scene, *, sought: bool = False) -> list[StatedFact]:
    """What a clause rules out or keeps: of each of its parts, where several state something of that kind.

    Args:
        clause: no question, unless plans are looked for in it.
        scene: what it is read against.
        sought: it asks for plans that keep within the constraints.
    """
    now = scene.study.plan
    parts = [read_clause(part, scene) for part in _PART.split(clause.text)]
    each = [_constraints(part, scene, sought=sought) for part in parts]
    whole = _constraints(clause, scene, sought=sought) or _goes_on_ruling_out(clause, scene)
    if whole or any(each):
        each = [found or _spared(part, now) for found, part in zip(each, parts, strict=True)]
    each = alike([part.text for part in parts], each)
    of_parts = [constraints for constraints in each if constraints]
    if not whole and not any(each) and len(parts) > 1 and _BARE.fullmatch(parts[-1].text):
        return _spared(parts[-1], now)
    if whole and len(of_parts) == 1:
        about = {one.about for one in whole}
        return [*(one for one in of_parts[0] if one.about not in about), *whole]
    ends_with_it = not whole and bool(each[-1]) and _SPARES.match(parts[-1].text) is not None
    return [one for constraints in of_parts for one in constraints] if len(of_parts) > 1 or ends_with_it else whole


def _another_count(text: str, clause: Clause, study: Study, kept: Sequence[StatedFact]) -> list[StatedFact | str]:
    """The batch or the sequence at which it is to stay, where the record has another one: "batch must stay at 512"."""
    on_record = {
        Claim.BATCH: study.experiment.workload.global_batch, Claim.SEQUENCE: study.experiment.workload.sequence_length,
    }  # fmt: skip
    if not {"batch", "sequence"} & {one.about for one in kept}:
        return []
    found = run_facts(text, study, clause.refs, reported=True)
    return [one for one in found if isinstance(one, StatedFact) and on_record.get(one.claim, one.value) != one.value]


def _goes_on_ruling_out(clause: Clause, scene: Scene) -> list[StatedFact]:
    """What a few words add to the constraints of the line before: "and no cp"."""
    before = scene.latest and all(fact.claim is Claim.CONSTRAINT for fact in scene.latest)
    more = before and _ADDS.match(clause.text) is not None
    return constraints_in(clause.text, clause.refs, scene.study.plan, sought=True) if more else []


def _constraints(part: Clause, scene: Scene, *, sought: bool) -> list[StatedFact]:
    if (limit := micro_batch_limit_in(part.text, scene.study)) is not None:
        return [limit]
    if (limit := placement_limit_in(part.text, part.refs, scene.study)) is not None:
        return [limit]
    return constraints_in(part.text, part.refs, scene.study.plan, sought=sought)


def _spared(part: Clause, now: Plan | None) -> list[StatedFact]:
    """What a part rules out or keeps that stands beside another constraint."""
    return constraints_in(part.text, part.refs, now, sought=True) if _SPARES.match(part.text) else []


def _is_no_report(text: str, study: Study) -> bool:
    """Whether it is a doubt, an order, or of another run."""
    return has("strong", text) or is_order(text) or is_foreign(text, study)


def _measured(
    clause: Clause, scene: Scene, before: Sequence[StatedFact], under: Sequence[Plan] = ()
) -> list[StatedFact | str]:
    """Figures and outcomes of plans that ran; ``under`` is the plan with the settings under which it did."""
    study, text, plans = scene.study, clause.text, list(under) or clause.plans
    if not under and study.plan is not None and is_of_what_runs(text, clause.refs):
        plans = under = [study.plan]
    figures = figures_in(text, clause.amounts, study)
    if outcome_in(without_plans(text)) is Claim.OUT_OF_MEMORY:
        figures = [figure for figure in figures if figure.claim is not Claim.HBM_BYTES]
    compared = bool(figures) and _against_baseline(text, figures)
    another = against_another(text, that_runs_now=scene.focus == study.plan)
    if figures and len(plans) > 1 and not compared and not another:
        return _parts(text, scene)
    loose = [amount for amount in clause.amounts if not amount.unit and amount.value % 1]
    if len(figures) == 1 and loose and plans and _BESIDE_NOW.search(text):
        return [_ONE_EACH]
    if not figures and (of_before := _bare_figure(clause, before)):
        figures = [of_before]
    outcome = None if figures else outcome_in(without_plans(text))
    if compared or (outcome in {Claim.SLOWER, Claim.FASTER} and speaks_of_baseline(text)):
        plans = [plan for plan in plans if plan != study.plan] or plans
    if another and (outcome in _COMPARISONS or any(figure.claim in _COMPARISONS for figure in figures)):
        return [_ONLY_WITH_THE_BASELINE]
    if outcome is not None:
        return _of_plans(text, StatedFact(claim=outcome, words=text), plans, study)
    return [item for figure in figures for item in _figure(text, figure, plans, study, told=bool(under))]


def _figure(
    clause: str, figure: StatedFact, plans: Sequence[Plan], study: Study, *, told: bool
) -> list[StatedFact | str]:
    """The figure, of the plans; where it is ``told`` of which, it needs no verb of a report."""
    rest = without_plans(clause)
    of_run = all(plan == study.plan for plan in plans) and (
        figure.claim in _OF_THE_RUN or _OURS.search(rest) or _STEP.search(rest)
    )
    if not happened(rest) and not of_run and not told:
        return []
    if of_run and figure.claim in {*_OF_THE_RUN, Claim.STEP_TIME} and study.plan is not None:
        if not plans and (lone := lone_subject(rest)) is not None:
            return [f'Is "{lone}" the number of a proposal? Say "proposal {lone} …", or "the baseline …".']
        if not plans and (name := unknown_subject(rest)) is not None:
            return [unknown_plan(plain(name, 60))]
        plans = [study.plan]
    return _of_plans(clause, figure, plans, study)


def _parts(clause: str, scene: Scene) -> list[StatedFact | str]:
    """The facts of a clause in which several plans were measured: those of each part of it."""
    found: list[StatedFact | str] = []
    unit = ""
    for piece in _PART.split(clause):
        text = _BARE_RESULT.sub(lambda result, unit=unit: f"{result[0]} {unit}", piece, count=1) if unit else piece
        part = read_clause(text, replace(scene, focus=None))
        unit = next((amount.text.lstrip("0123456789., ") for amount in part.amounts if amount.unit), unit)
        figures = figures_in(text, part.amounts, scene.study)
        if not figures and not part.refs.plans:
            continue
        if not figures and (outcome := outcome_in(without_plans(text))) is not None:
            found += _of_plans(text, StatedFact(claim=outcome, words=text), part.refs.plans, scene.study)
            continue
        if len(figures) != 1 or len(part.refs.plans) != 1:
            return [_ONE_EACH]
        found += _of_plans(text, figures[0], part.refs.plans, scene.study)
    return found


def _bare_figure(clause: Clause, before: Sequence[StatedFact]) -> StatedFact | None:
    """A number without unit after a step time was stated: "the baseline was 2.9"."""
    last = next(iter(reversed(before)), None)
    ranks = {mention.start for mention in clause.refs.mentions if mention.way == "rank"}
    bare = [a for a in clause.amounts if not a.unit and not a.before and a.value < 1000 and a.start not in ranks]
    if last is None or last.claim is not Claim.STEP_TIME or len(clause.plans) != 1 or len(bare) != 1:
        return None
    text = clause.text
    return StatedFact(claim=Claim.STEP_TIME, value=bare[0].value, words=text) if happened(text) else None


def _of_plans(clause: str, fact: StatedFact, plans: Sequence[Plan], study: Study) -> list[StatedFact | str]:
    if not plans:
        return [fact.model_copy(update={"words": plain(clause, LONGEST_WORDS)})]
    if fact.claim in _COMPARISONS and len(plans) > 1:
        return [_ONLY_WITH_THE_BASELINE]
    words = plain(clause, LONGEST_WORDS)
    return [checked(fact.model_copy(update={"plan": plan, "words": words}), study) for plan in plans]


def checked(item: StatedFact, study: Study) -> StatedFact | str:
    """A fact of a plan, or why the plan cannot have run here."""
    assert item.plan is not None
    plan = study.complete(filled(study, item.plan))
    broken = violations(plan, study.constraints)
    if broken:
        return f"{plan} cannot have run here: {'; '.join(v.sentence for v in broken)}. I have not recorded it."
    unseen = item.claim in {Claim.OUT_OF_MEMORY, Claim.FITS} and study.profile is None
    if plan == study.plan and item.claim not in {*_OF_THE_RUN, Claim.STEP_TIME} and not unseen:
        return f"{plan} is the plan that the profile shows running; I have not recorded that it {item.claim.value}."
    return item.model_copy(update={"plan": plan})


def _against_baseline(clause: str, figures: Sequence[StatedFact]) -> bool:
    relative = all(figure.claim is Claim.RELATIVE for figure in figures)
    return relative and re.search(r"\bthan\b|\bversus\b|\bvs\b", clause) is not None
