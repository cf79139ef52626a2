"""A vocabulary for a model whose other shapes are known: that of a published model like it, else a usual one."""

from collections import Counter

from asap.experiments.experiment import Experiment
from asap.models import Architecture
from asap.models.catalogue import find_architecture, known_architectures

USUAL = 51_200
"""Median of the 163 published models in asap/models/catalogue.jsonl."""
_SHAPES = ("layers", "d_model", "d_ff", "gated_mlp", "heads", "kv_heads", "experts", "expert_d_ff")


def with_vocabulary(experiment: Experiment) -> Experiment:
    """``experiment`` with a vocabulary, and a note that says whose, where nothing else of its model is missing."""
    model = experiment.model
    if model is None or model.missing() != ("vocab",):
        return experiment
    name, tokens = _of_same_shapes(model)
    if tokens:
        taken = f"the {tokens:,} tokens of {name}, which has these shapes"
    else:
        taken = f"{USUAL:,} tokens, the median of published models"
    note = f"the vocabulary is not stated, and taken as {taken}: model.vocab=N says another"
    known = model.model_copy(update={"vocab": tokens or USUAL, "vocab_assumed": not tokens})
    sources = experiment.provenance | {"model.vocab": "assumed"}
    update = {"model": known, "notes": (*experiment.notes, note), "provenance": sources}
    return experiment.model_copy(update=update)


def _of_same_shapes(model: Architecture) -> tuple[str, int | None]:
    """A published model of the same shapes, and the vocabulary that most of these have."""
    shapes = model.model_dump(include=set(_SHAPES))
    published = (find_architecture(name) for name in known_architectures())
    alike = [one for one in published if one and one.vocab and one.model_dump(include=set(_SHAPES)) == shapes]
    if not alike:
        return "", None
    tokens, _ = Counter(one.vocab for one in alike).most_common(1)[0]
    return next(str(one.name) for one in alike if one.vocab == tokens), tokens
