"""Untested ideas of the engine and of a model."""

from collections.abc import Sequence

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.workflow.schemas import UntestedIdea
from asap.prediction.prediction import Prediction
from asap.study.study import Study


def ideas_of(
    study: Study, incumbent: Prediction | None, said: Sequence[UntestedIdea], catalogue: Catalogue
) -> tuple[()]:
    """Nothing yet."""
    return ()
