"""The model's word on the configurations of a run, and the proposer that starts from it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.evidence.step_belief import Array, Prior, Result, plans_apart
from asap.hardware import Slice
from asap.optimize.loop import NotUsableError
from asap.optimize.outcome import Configuration, Expectation, Suggestion, Try
from asap.optimize.proposers.memory_belief import MemoryKernel
from asap.optimize.proposers.model_guided import ModelGuided
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.prediction.step_model.encoding import require, step_inputs
from asap.prediction.step_model.groups import Groups, allocator_class
from asap.prediction.step_model.step import predict_step
from asap.prediction.step_model.step_parts import parts_of_each
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.residual_kernel import COMPILED
from asap.proposals.launch import why_not_launched
from asap.proposals.selection.search import SearchResult, search
from asap.proposals.selection.strategy import Places
from asap.study.start import is_start
from asap.study.study import Study, read_plan


@dataclass(frozen=True)
class GuidedPlans:
    """The built-in proposer of plans of a run, for a language model to argue with (:class:`asap.optimize.loop.Engine`).

    Args:
        study: the run.
        guided: of its configurations.
    """

    study: Study
    guided: ModelGuided
    language: Mapping[str, Any] = field(default_factory=dict)

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """As :meth:`ModelGuided.propose`."""
        return self.guided.propose(tries)

    def best(self, tries: Sequence[Try], count: int) -> list[Suggestion]:
        """As :meth:`ModelGuided.best`."""
        return self.guided.best(tries, count)

    def read(self, text: str) -> Configuration:
        """A plan, with what it leaves out as in the plan that runs."""
        try:
            plan = read_plan(self.study, text)
        except PlanError as error:
            raise NotUsableError(f"the configuration cannot be used: {error}") from error
        if refused := why_not_launched(self.study, plan):
            raise NotUsableError(f"the configuration cannot be launched: {refused}")
        return str(plan)

    def expected(self, configuration: Configuration, tries: Sequence[Try]) -> Suggestion:
        """What is expected of a plan; what the model of the step says where the proposer does not consider it.

        Raises:
            NotUsableError: the launcher refuses one of its settings.
        """
        if refused := self.guided.refuses(configuration, tries):
            raise NotUsableError(f"the launcher refused {refused} in an earlier try")
        if considered := self.guided.expected(configuration, tries):
            return considered
        (found,) = expect(self.study, [Plan.parse(configuration)])
        return Suggestion(configuration=configuration, why="", predicted=Expectation.of(found))


MOST = 2000
"""Configurations that are kept, the best by the model. Judgement: the time."""
_HOPELESS = 1.5
"""Modelled HBM over that of a device above which nothing is tried: no published run needed so much less."""


def parts_under(study: Study, plans: Sequence[Plan]) -> Array:
    """Seconds for a sequence of the parts of the modelled step of a run under each plan, of shape (plans, parts).

    Raises:
        InsufficientEvidenceError: architecture, batch or sequence is not known.
    """
    experiment, hardware = study.experiment, study.slice
    architecture = require(experiment.model, experiment.workload)
    assert hardware is not None
    fit, inputs = load_calibration().full, step_inputs(plans, architecture, experiment.workload, hardware)
    step = predict_step(inputs, fit.resolve_one(Groups.of(hardware, experiment.workload)))
    return parts_of_each(step) / np.broadcast_to(inputs.workload.batch, len(plans))[:, None]


@dataclass(frozen=True)
class Searched:
    """A run whose configurations were all evaluated by the model.

    Args:
        study: the run.
        found: every configuration.
        modelled_s: the model's step time of the plan that runs.
    """

    study: Study
    found: SearchResult
    modelled_s: float

    @classmethod
    def of(cls, study: Study) -> "Searched":
        """Search a run.

        Raises:
            InsufficientEvidenceError: plan, rematerialisation, architecture, batch, sequence or hardware is not known.
        """
        bare = replace(study, profile=None)
        found = search(bare, lambda meshes: np.zeros(len(meshes)))
        if found is None or study.plan is None:
            raise InsufficientEvidenceError(
                "the configurations cannot be searched: plan, rematerialisation, model, batch, sequence and hardware"
                " have to be known",
                where=study.experiment.id, hint="`asap experiments add ID --config FILE --hardware NAME`",
            )  # fmt: skip
        step = expect(bare, [study.plan])[0].step_time
        assert step is not None
        return cls(study, replace(found, fits_now=True), step.value)

    def proposer(self, *, compiled: bool = False) -> ModelGuided:
        """The built-in proposer, with what was measured before; ``compiled`` where the compiler is what tells."""
        calibration, experiment = load_calibration().full, self.study.experiment
        allocator = allocator_class(experiment.workload.framework, self._slice.chip.kind)
        kernel = calibration.residual_kernel.scattering(COMPILED if compiled else 1.0)
        return ModelGuided(
            prior=self.prior(), kernel=kernel, memory=MemoryKernel.of(calibration.overhead(allocator)),
            capacity=self.capacity, first=None if is_start(experiment) else str(self.study.plan), known=self._known(),
        )  # fmt: skip

    def prior(self) -> Prior:
        """The best configurations by the model, what runs now among them."""
        evaluation, places = self.found.evaluation, self._places()
        index = tuple(places.T)
        plans = [self.found.plan(place) for place in places]
        return Prior(
            configurations=tuple(map(str, plans)), log_time=math.log(self.modelled_s) - evaluation.gain[index],
            log_fill=np.log(evaluation.hbm[index] / self.capacity), effort=self.found.effort(places),
            apart=plans_apart(plans), refused=lambda place: why_not_launched(self.study, plans[place]),
            parts=parts_under(self.study, plans),
        )  # fmt: skip

    @property
    def capacity(self) -> float:
        """HBM of a device, bytes."""
        return self._slice.chip.device_capacity

    @property
    def _slice(self) -> Slice:
        assert self.study.slice is not None
        return self.study.slice

    def _places(self) -> Places:
        evaluation = self.found.evaluation
        hopeless = evaluation.hbm > _HOPELESS * self.capacity
        places = np.argwhere(evaluation.valid & ~hopeless & ~self.found.saves_hbm_in_vain)
        worth = self.found.worth(places)
        kept = np.argsort(-worth, kind="stable")[:MOST]
        now, others = np.zeros((1, places.shape[1]), dtype=np.int64), places[kept]
        return np.concatenate([now, others[np.any(others != 0, axis=1)]])

    def _known(self) -> tuple[Result, ...]:
        """The step time on record."""
        profile, plan = self.study.profile, self.study.plan
        if profile is None or plan is None or not profile.kpis.step_time_s:
            return ()
        kpis = profile.kpis
        error = (kpis.step_time_stddev_s or 0.0) / math.sqrt(kpis.steps or 1)
        return (Result(str(plan), kpis.step_time_s or 0.0, error, 1),)
