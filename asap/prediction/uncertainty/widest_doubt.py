"""Why an interval is wide: the doubt that adds most to it, in words."""

from asap.prediction.uncertainty.step_interval import Doubts, StepInterval

REASONS = {
    "distance": "its sizes lie outside those of the runs that the model was fitted to",
    "chip": "the model was fitted to no run on this chip",
    "vendor": "the model was fitted to no run on a chip of this maker",
    "framework": "the software is not stated, or none that the model was fitted to",
    "code": "software of this kind differs much from one code to the next",
    "precision": "the model was fitted to no run in this precision",
    "communication": "what communication overlaps with is hard to predict",
    "network": "communication between nodes is hard to predict",
    "launches": "how fast the host launches kernels decides the step",
    "experts": "mixtures of experts are hard to predict",
}


def widest_doubt(interval: StepInterval, doubts: Doubts, index: int) -> str | None:
    """The name of the doubt that adds most to the interval of one step; ``unstated`` is what the run does not say, and
    ``None`` stands for what no run is free of."""
    added = interval.added(doubts)
    found = max(added, key=lambda name: float(added[name].flat[index if added[name].size > 1 else 0]))
    return None if found == "any" else found
