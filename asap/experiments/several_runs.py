"""Scripts that start more than one run."""

from pathlib import Path

from asap.experiments.experiment import Experiment


def with_note_on_others(experiment: Experiment, path: Path, runs: int, line: int) -> Experiment:
    """``experiment`` with a note on which of the runs of a script it is.

    Args:
        experiment: the run that is read.
        path: the script.
        runs: how many it starts.
        line: of the command that starts the one that is read.
    """
    if runs < 2:
        return experiment
    note = f"{path.name} starts {runs} runs; the one of line {line} is read"
    return experiment.model_copy(update={"notes": (*experiment.notes, note)})
