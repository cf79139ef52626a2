"""Proposes programs of the mapping language: what single tensors and ranges of layers do otherwise than the best plan.

Plans come first, as another proposer orders them. Then the first layers keep more for their backward pass, as many as
fit. Then one group of tensors after the other is split otherwise. The step model predicts both; what it expects to save
most is compiled first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from asap.compiler.reference.target import mapping_target
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_seconds
from asap.hardware import Slice
from asap.mapping.language.parse import parse
from asap.mapping.target import Target
from asap.mapping.variations import Variation, first_layers_recompute, split_otherwise
from asap.optimize.outcome import Configuration, Expectation, Suggestion, Try
from asap.optimize.programs import is_program, program_text
from asap.optimize.protocols import Proposer
from asap.optimize.results import best_of, ended, results
from asap.optimize.stopping import WORTH_KNOWING
from asap.plans import Remat
from asap.plans.remat import Policy
from asap.prediction.predict_program import predict_program
from asap.prediction.prediction import Prediction
from asap.study.study import Study

KEEPING_MORE = (Remat.NONE, Remat.MINIMAL, Remat.SAVE_DOT_EXCEPT_MLP, Remat.SAVE_QKV_PROJ, Remat.SAVE_OUT_PROJ)
FEW = 3
"""Plans that are evaluated first where the budget is a time."""
_FINEST = 16
"""Parts of the model's layers: a range that fits is not made longer by less than one of them."""


@dataclass(frozen=True)
class ByTensor:
    """Single tensors and ranges of layers under the best of some plans.

    Args:
        plans: proposes plans.
        most_plans: that are evaluated before anything else.
        target: the model.
        hardware: the machine.
        predict: a program's prediction.
        splits: programs that split a group of tensors otherwise than one does.
    """

    plans: Proposer
    most_plans: int
    target: Target
    hardware: Slice
    predict: Callable[[Configuration], Prediction]
    splits: Callable[[Configuration], Sequence[Variation]]

    @classmethod
    def of(cls, study: Study, plans: Proposer, most_plans: int) -> "ByTensor":
        """For a run.

        Raises:
            InsufficientEvidenceError: model or hardware is not known.
        """
        experiment, hardware = study.experiment, study.slice
        model, workload = experiment.model, experiment.workload
        if hardware is None or model is None:
            raise InsufficientEvidenceError("model and hardware have to be known", where=experiment.id)
        target = mapping_target(model, workload)

        @cache
        def predicted(text: Configuration) -> Prediction:
            return predict_program(parse(text)[0], target, model, workload, hardware)

        @cache
        def splits(text: Configuration) -> Sequence[Variation]:
            return tuple(split_otherwise(text, target, hardware))

        return cls(plans, most_plans, target, hardware, predicted, splits)

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next plan or program; ``None`` where none is left."""
        if sum(not is_program(each.configuration) for each in tries) < self.most_plans:
            plan = self.plans.propose(tries)
            if plan is not None and (plan.saving is None or plan.saving > WORTH_KNOWING):
                return plan
        best, tried = best_of(tries), {each.configuration for each in tries}
        if best is None:
            return None
        text = program_text(best.configuration)
        found = (*self._layers(text, tries), *self._splits(text, tries))
        return next((each for each in found if each.configuration not in tried), None)

    def _layers(self, text: str, tries: Sequence[Try]) -> Iterator[Suggestion]:
        """As many first layers as fit keep more: by the predicted HBM of a layer, then by what was seen.

        None more where some that fitted were no faster: a range is a loop of its own, which may hide less.
        """
        base, whole = self._keeping(text, Remat.FULL, 0), self.target.layers
        policy, left = self._worth_most(base), self._left(base, tries)
        if policy is None:
            return
        _, taken = _difference(self.predict(base), self.predict(self._keeping(base, policy, whole)))
        fitted, refused, of_a_layer = 0, whole + 1, taken / whole
        slowest = self._seconds(base, tries)
        for each, outcome in ended(tries):
            layers = self._number_of_layers(each.configuration, base, policy)
            if layers and (outcome.step_time_s or 0.0) >= slowest:
                return
            if layers and outcome.status == "done" and layers > fitted:
                fitted, of_a_layer = layers, (left - self._left(program_text(each.configuration), tries)) / layers
            elif layers and "OUT_OF_MEMORY" in outcome.codes:
                refused = min(refused, layers)
        layers = min(whole, int(left / of_a_layer)) if of_a_layer > 0 else 0
        layers = layers if layers < refused else (fitted + refused) // 2
        if layers - fitted > (whole // _FINEST if fitted else 0):
            varied = self._keeping(base, policy, layers)
            why = f"{layers} of {whole} layers keep more: what fits"
            yield Suggestion(configuration=varied, why=why, predicted=_expected(self.predict(varied)))

    def _worth_most(self, base: str) -> Policy | None:
        """The policy that saves most time for the HBM that it takes, by the model; ``None`` if none saves any."""
        now = self.predict(base)
        rates: dict[Policy, float] = {}
        for policy in KEEPING_MORE:
            then = self.predict(self._keeping(base, policy, self.target.layers))
            saved, taken = _difference(now, then)
            if saved > 0 and taken > 0:
                rates[policy] = saved / taken
        return max(rates, key=lambda policy: rates[policy], default=None)

    def _keeping(self, text: str, policy: Policy, layers: int) -> str:
        return first_layers_recompute(text, policy, layers, self.target)

    def _number_of_layers(self, configuration: Configuration, base: str, policy: Policy) -> int | None:
        """How many first layers have the policy under a configuration that is the base otherwise."""
        text = program_text(configuration)
        counts = range(self.target.layers + 1)
        return next((count for count in counts if self._keeping(base, policy, count) == text), None)

    def _splits(self, text: str, tries: Sequence[Try]) -> Iterator[Suggestion]:
        """What fits beside what was seen to be held: the program that is predicted to save most first."""
        now, left = self.predict(text), self._left(text, tries)
        found = [(each, *_difference(now, self.predict(each.text))) for each in self.splits(text)]
        for each, saved, taken in sorted(found, key=lambda one: -one[1]):
            if taken <= left:
                words = f"{format_seconds(abs(saved))} a step {'less' if saved >= 0 else 'more'}, by the model"
                expected = _expected(self.predict(each.text))
                yield Suggestion(configuration=each.text, why=f"{each.what}: {words}", predicted=expected)

    def _seconds(self, text: str, tries: Sequence[Try]) -> float:
        """Step time that a configuration was seen to have; endless if it was not."""
        found = (result.step_time_s for result in results(tries) if program_text(result.configuration) == text)
        return next(found, float("inf"))

    def _left(self, text: str, tries: Sequence[Try]) -> float:
        """HBM that a configuration was seen to leave, bytes; 0 if it was not."""
        held = (o.hbm_bytes for each, o in ended(tries) if program_text(each.configuration) == text and o.hbm_bytes)
        return max(self.hardware.chip.device_capacity - next(held, float("inf")), 0.0)


def _difference(now: Prediction, then: Prediction) -> tuple[float, float]:
    """Seconds that a prediction saves against another, and bytes that it takes more; 0 if they are not known."""
    if not (now.step_time and then.step_time and now.memory and then.memory):
        return 0.0, 0.0
    return now.step_time.value - then.step_time.value, then.memory.total.value - now.memory.total.value


def _expected(found: Prediction) -> Expectation:
    step, memory = found.step_time, found.memory
    held = memory.total.value if memory else None
    if step is None:
        return Expectation(hbm_bytes=held)
    return Expectation(step_time_s=step.value, low_s=step.low, high_s=step.high, hbm_bytes=held)
