"""One configuration at both commits of a pull request, as the report has it."""

from dataclasses import dataclass

from asap.ci.comparing import batch_text, differences, hardware_text, model_text, plan_text
from asap.ci.expecting import Expected, anchored, expectation, expected, relative_cost
from asap.ci.known import Known
from asap.ci.policy import Policy
from asap.ci.precedents import repeated
from asap.ci.report import ConfigurationReport, Side
from asap.ci.resolving import Resolved, resolve
from asap.ci.revision import Revision, shown
from asap.ci.selection import Touched, changed_lines
from asap.ci.suggesting import proposals_for, suggestion
from asap.core.text import plain
from asap.plans.validity import violations

_MOST_NOTES = 12
_NOTHING_FITS = "No valid plan is predicted to fit with this batch: lower it, accumulate gradients, or recompute more."


@dataclass(frozen=True)
class Pair:
    """Both commits, the policy, and the experiments that are known."""

    before: Revision
    after: Revision
    policy: Policy
    known: Known

    def report(self, one: Touched) -> ConfigurationReport | None:
        """One configuration; ``None`` if it only seemed to include what changed."""
        old = resolve(self.before, one.before, self.policy, self.known) if one.before else None
        new = resolve(self.after, one.after, self.policy, self.known) if one.after else None
        if one.status == "affected" and new is not None and new.problem is None and not self._differs(new):
            return None
        known = next((side.known for side in (new, old) if side is not None and side.known is not None), None)
        expectations = [_expected(side) for side in (old, new)]
        sides = [self._side(side, known_of) for side, known_of in zip((old, new), expectations, strict=True)]
        partial = ConfigurationReport(
            path=shown(one.path),
            previous_path=shown(one.before) if one.before and one.before != one.path else None,
            status=one.status,
            line=_line(old, new),
            experiment=known.experiment.id if known else None,
            before=sides[0],
            after=sides[1],
            notes=_notes(new or old),
        )
        update = _compared(old, new, (expectations[0], expectations[1])) | _suggested(new)
        return partial.model_copy(update=update)

    def _differs(self, new: Resolved) -> bool:
        return any(self.before.tree.get(path) != self.after.tree.get(path) for path in new.closure)

    def _side(self, resolved: Resolved | None, found: Expected) -> Side | None:
        if resolved is None:
            return None
        study = resolved.study
        if study is None:
            return Side(problem=resolved.problem.message if resolved.problem else None)
        experiment = study.experiment
        broken = violations(study.plan, study.constraints) if study.plan else []
        return Side(
            plan=plan_text(experiment),
            model=model_text(experiment),
            batch=batch_text(experiment),
            hardware=hardware_text(experiment),
            violations=tuple(plain(violation.sentence, 500) for violation in broken),
            expectation=expectation(found.prediction, study, self.policy.prices) if found.prediction else None,
            unpredicted=found.reason,
        )


def _expected(resolved: Resolved | None) -> Expected:
    if resolved is None or resolved.study is None:
        return Expected()
    return expected(resolved.study, resolved.known)


def _compared(old: Resolved | None, new: Resolved | None, sides: tuple[Expected, Expected]) -> dict[str, object]:
    if old is None or new is None or old.study is None or new.study is None:
        return {}
    return {
        "changes": differences(old.study, new.study),
        "relative_cost": relative_cost(old.study, new.study, sides, new.known or old.known),
        "precedent": repeated(old.study, new.study),
    }


def _suggested(new: Resolved | None) -> dict[str, object]:
    study = new.study or new.repaired if new else None
    if new is None or study is None:
        return {}
    start = anchored(study, new.known) if _is_incumbent(new) else study
    found = proposals_for(start)
    incumbent = found.incumbent.memory if found.incumbent else None
    nothing_fits = not found.proposals and incumbent is not None and not incumbent.fits
    return {
        "suggestions": tuple(suggestion(proposal, new, study) for proposal in found.proposals),
        "recommendation": _NOTHING_FITS if nothing_fits else plain(found.recommendation.statement, 500),
    }


def _is_incumbent(resolved: Resolved) -> bool:
    return bool(resolved.known and resolved.study and resolved.known.plan == resolved.study.plan)


def _line(old: Resolved | None, new: Resolved | None) -> int:
    if new is None:
        return 1
    if new.problem is not None and new.problem.line:
        return new.problem.line
    return changed_lines(old.text if old else None, new.text)[0]


def _notes(resolved: Resolved | None) -> tuple[str, ...]:
    if resolved is None:
        return ()
    return tuple(plain(note, 500) for note in dict.fromkeys(resolved.notes))[:_MOST_NOTES]
