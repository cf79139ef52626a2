"""A team's own measured runs, of rows, sessions of ``asap optimize`` and its history, against our predictions."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.dataset.sources import infer_missing_remat
from asap.calibration.fit.predicted_runs import half_widths, likeness_of, predict_each
from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.core.files import home, is_file, user_path
from asap.core.locking import locked
from asap.core.text import plain
from asap.experiments import HardwareReference
from asap.hardware import resolve_hardware
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.degrees import workload_under
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.own_runs import OwnRun, OwnRuns, keep_own_runs, load_own_runs

HISTORY = "history"
_MEASURED_HERE = {"status": "ok", "trust": "A"}
"""What a row of one's own need not say."""


@dataclass(frozen=True)
class Reading:
    """What was read from one place.

    Args:
        origin: the place.
        runs: that can be used.
        skipped: reason → runs that cannot be used.
        how: the step times came about, where they are not of whole runs.
    """

    origin: str
    runs: tuple[PublishedRun, ...]
    skipped: Counter[str] = field(default_factory=Counter)
    how: str = ""


def read_measured(origin: str, models: Path | None = None) -> Reading:
    """The measured runs of a place.

    Args:
        origin: ``history`` (one's own records), a file of rows as ``asap accuracy backtest`` reads them, or a session.
        models: architectures of the rows.

    Raises:
        UsageError: rows without architectures.
        NotFoundError: neither a file nor a session.
        InsufficientEvidenceError: the session ran nothing.
        BadInputError: it cannot be read.
    """
    if origin == HISTORY:
        found = list(_history_runs())
    elif is_file(path := user_path(origin)):
        if models is None:
            hint = "--models FILE, one JSON object a line, as for `asap accuracy backtest`"
            raise UsageError("the rows name models whose shapes are needed", where=origin, hint=hint)
        found = list(read_runs([_MEASURED_HERE | row for row in read_rows(path)], read_models(models)))
    else:
        found = list(_session_runs(origin))
    skipped = Counter(each for each in found if isinstance(each, str))
    timed = [each for each in found if isinstance(each, PublishedRun) and each.step_time is not None]
    return Reading(origin, tuple(infer_missing_remat(timed)), skipped)


def merge_own_runs(readings: Sequence[Reading]) -> OwnRuns:
    """The runs on record with those that were read; runs of the same place are replaced.

    Raises:
        InsufficientEvidenceError: nothing that was read can be used.
    """
    calibration, read = load_calibration(), [(reading, run) for reading in readings for run in reading.runs]
    if not read:
        reasons = ", ".join(f"{count} x {reason}" for each in readings for reason, count in each.skipped.items())
        where = ", ".join(reading.origin for reading in readings)
        raise InsufficientEvidenceError(
            f"no measured run can be used: {plain(reasons or 'there is none')}", where=where
        )
    runs = [run for _, run in read]
    fits = [calibration.full] * len(runs)
    predicted = predict_each(runs, fits)
    measured = np.array([run.step_time for run in runs], dtype=float)
    residuals = np.log(measured / predicted.step_time) / half_widths(predicted, fits)
    new = [
        OwnRun(
            id=run.id, origin=reading.origin, how=reading.how, **asdict(likeness_of(run)),
            step_time_s=seconds, predicted_s=expected, residual=round(residual, 6),
        )
        for (reading, run), seconds, expected, residual in zip(
            read, measured.tolist(), predicted.step_time.tolist(), residuals.tolist(), strict=True
        )
    ]  # fmt: skip
    before, replaced = load_own_runs(), {reading.origin for reading in readings}
    usable = before.runs if before is not None and before.calibrated == calibration.date else ()
    kept = tuple(run for run in usable if run.origin not in replaced)
    return OwnRuns(calibrated=calibration.date, runs=(*kept, *new))


def add_own_runs(readings: Sequence[Reading]) -> OwnRuns:
    """Write down the runs on record with those that were read; raises like :func:`merge_own_runs`.

    Raises:
        LockedError: another process holds the runs for too long.
        BadInputError: the folder cannot be written.
    """
    with locked(home(), "your own runs"):
        found = merge_own_runs(readings)
        keep_own_runs(found)
        return found


def _session_runs(name: str) -> Iterator[PublishedRun | str]:
    """The configurations that a session ran."""
    from asap.optimize.by_evaluation import open_session
    from asap.optimize.results import results

    request, session = open_session(name)
    if request.evaluate != "run":
        raise InsufficientEvidenceError("nothing was measured: it ran nothing", where=name)
    experiment, hardware = request.experiment, request.study.slice
    for number, found in enumerate(results(session.tries), 1):
        plan = Plan.parse(found.configuration)
        yield own_run(f"{name}-{number}", experiment.model, experiment.workload, hardware, plan, found.step_time_s)


def _history_runs() -> Iterator[PublishedRun | str]:
    """Both sides of each of one's own records that were timed."""
    from asap.history.files import load_records

    for record in (record for record in load_records() if record.origin == "user"):
        hardware = _slice(record.hardware)
        for side, plan, measured in (
            ("before", record.before, record.measured_before),
            ("after", record.after, record.measured_after),
        ):
            if plan is None or measured is None or measured.unit != "s":
                yield "no step time"
            else:
                name = f"{record.id}-{side}"
                yield own_run(name, record.model.architecture, record.workload, hardware, plan, measured.value)


def _slice(reference: HardwareReference) -> Slice | None:
    name = reference.chip or reference.name
    return resolve_hardware(name, reference.topology, reference.slices, reference.devices).slice if name else None


def own_run(
    name: str, model: Architecture | None, workload: Workload, hardware: Slice | None, plan: Plan, seconds: float
) -> PublishedRun | str:
    """One's own run, or why it cannot be used."""
    workload = workload_under(plan, workload)
    if model is None or model.missing() or hardware is None or not workload.tokens:
        return "architecture, hardware, batch or sequence is not known"
    return PublishedRun(
        id=name, source="own", group=name, chip=hardware.chip.name, framework=workload.framework or "", family="",
        architecture=model, workload=workload, hardware=hardware, plan=plan, step_time=seconds, out_of_memory=False,
        fabric=None,
    )  # fmt: skip
