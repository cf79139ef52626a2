"""From a line to evidence: only what is stated as having happened, or as being so, about this run.

A question, a supposition, an opinion and hearsay about other runs are not evidence. What looks like evidence but lacks
something is answered with what is missing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from asap.chat.evidence import Claim, StatedFact
from asap.chat.understanding.causes import host_memory, machine_failed
from asap.chat.understanding.claims import against_another, happened, outcome_in
from asap.chat.understanding.constraints import constraint_in
from asap.chat.understanding.markers import has, is_order, pretends
from asap.chat.understanding.measurements import figures_in
from asap.chat.understanding.quantities import Amount, amounts
from asap.chat.understanding.questions import is_question
from asap.chat.understanding.references import References, references, speaks_of_baseline
from asap.chat.understanding.run_facts import LONGEST_WORDS, run_facts
from asap.core.numbers import LARGEST_COUNT
from asap.core.text import plain
from asap.plans import Plan
from asap.plans.prose import without_plans
from asap.plans.validity import violations
from asap.study.study import Study

Item = TypeVar("Item")

_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+|,?\s+(?:but|however|although|yet|whereas|while)\s+(?!\d)", re.I)
_PART = re.compile(r",\s*(?:and\s+)?|\s+and\s+", re.I)
_CHIP = re.compile(r"\b(?:tpu ?)?(v[2-7][a-z]?|[abh]\d{2,3}|mi\d{3}\w?)(?:-\d+)?\b", re.I)
_MISTAKE = re.compile(
    r"\b(?:sorry|typo|correction|misread|mistyped|i meant|mistake|wrong number|actually|oops)\b", re.I
)
_OURS = re.compile(r"\b(?:we|our|ours|my|i|today|currently|now|dashboard|log|logs|profiler|mfu|hbm|throughput)\b", re.I)
_PER_STEP = re.compile(r"\b(?:per|a|each|an) (?:step|iteration)|/step\b|\bstep time\b", re.I)


def _is_no_fault_of_the_plan(item: StatedFact, text: str) -> bool:
    if item.claim is Claim.OUT_OF_MEMORY:
        return host_memory(text)
    return item.claim is Claim.FAILED and (has("outside_causes", text) or machine_failed(text))


def _is_plausible(item: StatedFact) -> bool:
    return item.value is None or 0 < item.value <= LARGEST_COUNT


@dataclass(frozen=True)
class Statements:
    """Evidence in a line, what is only supposed, what kept clauses from being evidence, and what a fact corrects."""

    evidence: tuple[StatedFact, ...] = ()
    supposed: tuple[StatedFact, ...] = ()
    complaints: tuple[str, ...] = ()
    corrected: tuple[StatedFact, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass
class Reader:
    """Reads the clauses of one line.

    Args:
        study: the run.
        order: the proposals, best first.
        focus: the plan spoken of last.
        known: facts on record, oldest first.
    """

    study: Study
    order: Sequence[Plan]
    focus: Plan | None
    known: Sequence[StatedFact] = ()

    def read(self, text: str) -> Statements:
        """Take a line apart and keep what is stated as a fact; raises PlanError where a plan in it is malformed."""
        evidence: list[StatedFact] = []
        supposed: list[StatedFact] = []
        complaints: list[str] = []
        corrected: list[StatedFact] = []
        questions: list[str] = []
        if pretends(text):
            return Statements(questions=(text,))
        for clause in filter(None, map(str.strip, _CLAUSE.split(text))):
            imagined = has("supposed", clause)
            if is_question(clause) and not imagined:
                questions.append(clause)
                continue
            old, new = self._correction(clause)
            if new is not None and old is not None:
                evidence.append(new)
                corrected.append(old)
                continue
            found = self._clause(clause, [*evidence, *supposed], imagined)
            facts = [item for item in found if isinstance(item, StatedFact)]
            (supposed if imagined else evidence).extend(facts)
            complaints += [item for item in found if isinstance(item, str) and not imagined]
            if not found:
                questions.append(clause)
        if blameless := [item for item in evidence if _is_no_fault_of_the_plan(item, text)]:
            names = ", ".join(str(item.plan) for item in blameless)
            complaints.append(
                f"That is not held against {names}: what you name is no fault of the plan. Nothing is recorded."
            )
        if any(not _is_plausible(item) for item in (*evidence, *supposed)):
            complaints.append(f"A number has to be above zero and at most {LARGEST_COUNT:,}. Nothing is recorded.")
            supposed = [item for item in supposed if _is_plausible(item)]
        evidence = [item for item in evidence if item not in blameless and _is_plausible(item)]
        return Statements(_once(evidence), _once(supposed), _once(complaints), _once(corrected), tuple(questions))

    def _clause(self, clause: str, before: Sequence[StatedFact], imagined: bool) -> list[StatedFact | str]:
        found = amounts(without_plans_kept(clause))
        refs = references(clause, self.order, self.focus, self.study.plan, found, _tried(clause))
        self.focus = refs.plans[-1] if refs.plans else self.focus
        if not imagined:
            if (constraint := constraint_in(clause, refs)) and not self._is_foreign(clause):
                return (
                    []
                    if has("strong", clause)
                    else [constraint.model_copy(update={"words": plain(clause, LONGEST_WORDS)})]
                )
            measured = bool(refs.plans and happened(clause) and any(a.unit for a in found))
            if has("strong", clause) or (has("weak", clause) and not measured) or is_order(clause):
                return []
            if self._is_foreign(clause):
                return []
        return self._stated(clause, refs, found, before)

    def _stated(
        self, clause: str, refs: References, found: Sequence[Amount], before: Sequence[StatedFact]
    ) -> list[StatedFact | str]:
        if of_run := run_facts(clause, self.study, refs):
            return of_run
        plans = [plan for plan in refs.plans if plan.devices > 1]
        figures = figures_in(clause, found, self.study.slice.devices if self.study.slice else None)
        if figures and len(plans) > 1 and not against_another(clause) and not _against_baseline(clause, figures):
            return self._parts(clause)
        if figures and _against_baseline(clause, figures):
            plans = [plan for plan in plans if plan != self.study.plan] or plans
        if not figures and (of_before := self._bare_figure(clause, found, plans, before)):
            figures = [of_before]
        outcome = None if figures else outcome_in(without_plans(clause))
        if outcome in {Claim.SLOWER, Claim.FASTER} and speaks_of_baseline(clause):
            plans = [plan for plan in plans if plan != self.study.plan] or plans
        if outcome is not None:
            return self._of_plans(clause, StatedFact(claim=outcome, words=clause), plans)
        return [item for figure in figures for item in self._figure(clause, figure, plans)]

    def _figure(self, clause: str, figure: StatedFact, plans: Sequence[Plan]) -> list[StatedFact | str]:
        rest = without_plans(clause)
        of_run = not plans and self.study.plan is not None and (_OURS.search(rest) or _PER_STEP.search(rest))
        if not happened(rest) and not of_run:
            return []
        if figure.claim in {Claim.MFU, Claim.HBM_SHARE, Claim.HBM_BYTES, Claim.THROUGHPUT}:
            plans = plans or ([self.study.plan] if self.study.plan is not None else [])
        elif of_run and figure.claim is Claim.STEP_TIME and self.study.plan is not None:
            plans = [self.study.plan]
        return self._of_plans(clause, figure, plans)

    def _parts(self, clause: str) -> list[StatedFact | str]:
        """The facts of a clause in which several plans were measured: those of each part of it."""
        found: list[StatedFact | str] = []
        for part in _PART.split(clause):
            of_part = amounts(without_plans_kept(part))
            refs = references(part, self.order, None, self.study.plan, of_part)
            figures = figures_in(part, of_part, None)
            if not figures and not refs.plans:
                continue
            if len(figures) != 1 or len(refs.plans) != 1:
                return ["One measurement per sentence, please, with its plan: it is not clear which figure is whose."]
            found += self._of_plans(part, figures[0], refs.plans)
        return found

    def _bare_figure(
        self, clause: str, found: Sequence[Amount], plans: Sequence[Plan], before: Sequence[StatedFact]
    ) -> StatedFact | None:
        """A number without unit after a step time was stated: "the baseline was 2.9"."""
        last = next(iter(reversed([*self.known, *before])), None)
        bare = [a for a in found if not a.unit and not a.before and a.value < 1000]
        if last is None or last.claim is not Claim.STEP_TIME or len(plans) != 1 or len(bare) != 1:
            return None
        return StatedFact(claim=Claim.STEP_TIME, value=bare[0].value, words=clause) if happened(clause) else None

    def _correction(self, clause: str) -> tuple[StatedFact | None, StatedFact | None]:
        """The fact that a clause corrects, and what it says instead: "it was 9.4 s, not 8.4"."""
        found = amounts(clause)
        old = [amount for amount in found if amount.before]
        new = [amount for amount in found if not amount.before]
        known = list(reversed(self.known))
        wrong = next((f for f in known if f.value is not None and any(_is(a, f) for a in old)), None)
        if wrong is None and _MISTAKE.search(clause) and len(new) == 1 and not speaks_of_baseline(clause):
            refs = references(clause, self.order, None, None, found)
            wrong = next((f for f in known if f.claim is Claim.STEP_TIME and new[0].unit in {"s", ""}), None)
            wrong = wrong if not refs.plans or (wrong and wrong.plan in refs.plans) else None
        if wrong is None or len(new) != 1 or is_question(clause) or has("strong", clause):
            return None, None
        value = new[0].value / 100 if wrong.unit == "%" else new[0].value
        if wrong.claim is Claim.RELATIVE:
            return None, None
        fields = {"value": value, "stated": new[0].value if wrong.unit else None, "words": plain(clause, LONGEST_WORDS)}
        return wrong, wrong.model_copy(update=fields)

    def _of_plans(self, clause: str, fact: StatedFact, plans: Sequence[Plan]) -> list[StatedFact | str]:
        if not plans:
            what = fact.claim.value.capitalize()
            return [f'Which plan? "{what}" counts once the plan is named, as in "proposal 2 …".']
        if fact.claim in {Claim.SLOWER, Claim.FASTER, Claim.RELATIVE} and (len(plans) > 1 or against_another(clause)):
            return ["A plan is compared with what runs now: state the step time of each in seconds."]
        words = plain(clause, LONGEST_WORDS)
        return [self._checked(fact.model_copy(update={"plan": plan, "words": words})) for plan in plans]

    def _checked(self, item: StatedFact) -> StatedFact | str:
        assert item.plan is not None
        plan = item.plan.completed_by(self.study.plan)
        broken = violations(plan, self.study.constraints)
        if broken:
            return f"{plan} cannot have run here: {'; '.join(v.sentence for v in broken)}. I have not recorded it."
        own = {Claim.STEP_TIME, Claim.MFU, Claim.THROUGHPUT, Claim.HBM_SHARE, Claim.HBM_BYTES}
        if plan == self.study.plan and item.claim not in own:
            return f"{plan} is the plan that the profile shows running; I have not recorded that it {item.claim.value}."
        if item.value is not None and item.value <= 0:
            return "A measurement is above zero; I have not recorded it."
        return item.model_copy(update={"plan": plan})

    def _is_foreign(self, clause: str) -> bool:
        if has("elsewhere", clause):
            return True
        own = self.study.slice.chip.name.lower() if self.study.slice else ""
        return any(not own.startswith(chip.lower()) for chip in _CHIP.findall(clause))


def without_plans_kept(text: str) -> str:
    """The text with written plans blanked, so that places stay."""
    from asap.chat.understanding.references import blanked
    from asap.plans.prose import plan_spans

    return blanked(text, [(start, end) for start, end, _ in plan_spans(text)])


def _once(items: list[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))


def _is(amount: Amount, fact: StatedFact) -> bool:
    return any(number is not None and abs(amount.value - number) < 1e-9 for number in (fact.value, fact.stated))


def _tried(clause: str) -> bool:
    """Whether a lone digit is a rank: "I tried 2"."""
    return re.search(r"\b(?:tried|tested|ran|run|benchmarked|timed)\s+(?:out\s+)?[1-9]\b", clause, re.I) is not None


def _against_baseline(clause: str, figures: Sequence[StatedFact]) -> bool:
    return (
        all(f.claim is Claim.RELATIVE for f in figures) and re.search(r"\bthan\b|\bversus\b|\bvs\b", clause) is not None
    )
