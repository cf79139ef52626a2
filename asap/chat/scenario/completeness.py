"""What the step model needs, and what of it a run lacks."""

from asap.study.study import Study


def is_complete(study: Study) -> bool:
    """Whether the step model can be used."""
    experiment = study.experiment
    known = experiment.model is not None and not experiment.model.missing()
    return known and bool(experiment.workload.tokens) and study.slice is not None


def missing(study: Study) -> str:
    """What the step model lacks."""
    model, workload = study.experiment.model, study.experiment.workload
    parts = ["the model's architecture"] if model is None else [f"the model's {name}" for name in model.missing()]
    parts += ["the global batch"] if workload.global_batch is None else []
    parts += ["the sequence length"] if workload.sequence_length is None else []
    parts += ["the hardware"] if study.slice is None else []
    return " and ".join(parts)
