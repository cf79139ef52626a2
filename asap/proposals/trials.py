"""Settings that no search varies, offered for a test beside the proposals."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Quantity, change_interval, format_bytes, format_odds, format_percent
from asap.diagnosis.facts import STEP_TIME_VARIATION, believed
from asap.evidence.effect import relative_to
from asap.levers.lever import Run, Trial
from asap.levers.table import TRIALS
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import fit_odds, fits
from asap.proposals.selection.search import run_of
from asap.stacks.launchers import FALLBACK, Stack, setting_lines
from asap.study.changed import drop_step_time
from asap.study.study import Study
from asap.traces.analysis.report import ReplayReport

_LEAST_SAVED = 0.04
"""Share of HBM from which on what a trial saves counts. Judgement: which trials are offered."""
UNCHANGED = 0.0005
"""Share of a step below which a change of its time is printed as none."""


class OfferedTrial(BaseModel):
    """A setting to test; its statement says what the step model expects, if anything."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str = Field(description="in a few words, for a sentence")
    statement: str
    relative_step_time: Quantity | None = Field(
        default=None, description="step time with it over that of now, if modelled"
    )
    saved_bytes: float = Field(
        default=0.0, description="HBM of a device that is expected to be saved, if modelled; below 0: taken more"
    )
    fit_odds: float | None = Field(default=None, description="that the run fits, where it fits without and not with it")
    fits: bool = Field(default=False, description="what runs does not fit, and is expected to fit with it")
    too_little: bool = Field(default=False, description="it saves HBM, and what runs fits neither without nor with it")
    source: str
    stack: Stack = FALLBACK
    settings: dict[str, str] = Field(description="in the words of the run's stack")
    line: str = Field(default="", description="what to paste, in the form that the run's settings were given in")

    @property
    def gain(self) -> float | None:
        """Share of the step that is expected to be saved, if modelled."""
        return None if self.relative_step_time is None else 1 - self.relative_step_time.value

    @property
    def saves_time(self) -> bool:
        """Whether it is expected to save more than undisturbed steps vary by."""
        return self.gain is not None and self.gain >= STEP_TIME_VARIATION


def trials_of(study: Study) -> tuple[OfferedTrial, ...]:
    """What is worth a test in a run: what is expected to save more than steps vary by, or HBM that counts, the most
    promising first; then what no prediction tells."""
    if study.plan is None or not study.experiment.hyperparameters:
        return ()
    run = run_of(study)
    offered = (_offered(study, run, trial) for trial in TRIALS if trial.settings(run))
    kept = [trial for trial in offered if trial.gain is None or trial.saves_time or trial.saved_bytes > 0]
    return tuple(sorted(kept, key=_promise, reverse=True))


def most_promising(trials: Iterable[OfferedTrial]) -> OfferedTrial | None:
    """Of the trials whose effect is modelled the one with which what runs fits, and that is expected to save most; none
    for which there is too little HBM."""
    modelled = (trial for trial in trials if trial.gain is not None and trial.fit_odds is None)
    return max(modelled, key=_promise, default=None)


def _promise(trial: OfferedTrial) -> tuple[bool, bool, bool, float]:
    return trial.fits, trial.fit_odds is None, trial.gain is not None, trial.gain or 0.0


def _offered(study: Study, run: Run, trial: Trial) -> OfferedTrial:
    relative, saved, makes_fit, odds, too_little = None, 0.0, False, None, False
    if (pair := _predicted(study, trial.changed(run))) is not None:
        now, then = pair
        relative, (saved, makes_fit) = relative_to(now, then, study.experiment.model), _hbm_saved(now, then)
        odds = fit_odds(then) if fits(now) and not fits(then) else None
        too_little = saved > 0 and not fits(now) and not fits(then)
    said, most = "only a run tells what it brings", most_held(study.replay, trial.at_most)
    if relative is not None:
        said = f"modelled, {effect(relative, saved)}{fit_words(odds, too_little)}"
    if relative is not None and most is not None and most < 1 - relative.value:
        relative = relative.model_copy(update={"value": 1 - most, "low": None, "high": None})
        said = f"the recorded run holds {format_percent(most)} of a step that it could save"
    words = f"{trial.title[0].upper()}{trial.title[1:]}: {trial.reason}; {said}."
    return OfferedTrial(
        name=trial.name, title=trial.title, statement=words, relative_step_time=relative, saved_bytes=saved,
        fits=makes_fit, too_little=too_little, fit_odds=odds, source=trial.source, stack=run.stack,
        settings=dict(trial.settings(run)), line=setting_lines(run.stack, trial.settings(run), run.settings),
    )  # fmt: skip


def most_held(replay: ReplayReport | None, change: str) -> float | None:
    """Share of the step that a change saves in the replay of the recorded run; ``None`` where that does not tell."""
    found = believed(replay)
    if found is None or not change or not (now := found.step_time_s.replayed_s):
        return None
    left = next((each.step_time_s for each in found.shortened_by if each.change == change), now)
    return max(1 - left / now, 0.0)


def _predicted(study: Study, changed: Mapping[str, object]) -> tuple[Prediction, Prediction] | None:
    """What runs, by the architecture, without and with a trial; ``None`` where its effect is not modelled."""
    before, model = study.experiment.workload, study.experiment.model
    if not changed or study.slice is None or study.plan is None or model is None or model.missing():
        return None
    workloads = before, before.model_copy(update=dict(changed))
    studies = [drop_step_time(study, study.experiment.model_copy(update={"workload": one})) for one in workloads]
    now, then = (expect(one, [study.plan])[0] for one in studies)
    return now, then


def _hbm_saved(now: Prediction, then: Prediction) -> tuple[float, bool]:
    """Bytes of a device that a trial saves, or takes below 0, where they can be told from nothing, and whether what
    runs fits by them."""
    if now.memory is None or then.memory is None:
        return 0.0, False
    saved = now.memory.total.value - then.memory.total.value
    counts = abs(saved) >= _LEAST_SAVED * now.memory.capacity_bytes
    return (saved if counts else 0.0), counts and then.memory.fits and not now.memory.fits


def fit_words(odds: float | None, too_little: bool) -> str:
    """Of the fit, where a setting puts it at risk or does not bring it."""
    if odds is not None:
        return f", fits with {format_odds(odds)}"
    return ", which is not enough" if too_little else ""


def effect(relative: Quantity, saved_bytes: float) -> str:
    """What changes: ``step time -10.0 % (-16 to -4 %), 3.00 GiB less HBM``."""
    moves = abs(1 - relative.value) >= UNCHANGED or not saved_bytes
    time = f"step time {change_interval(relative.value, relative.low, relative.high)}" if moves else ""
    hbm = f"{format_bytes(abs(saved_bytes))} {'less' if saved_bytes > 0 else 'more'} HBM" if saved_bytes else ""
    return ", ".join(filter(None, (time, hbm)))
