import pytest

from asap.history import HistoryRecord
from tests.homes import home

__all__ = ["home", "record"]


@pytest.fixture
def record():
    """Makes records that differ in what is given."""

    def make(id_="mine", **fields):
        told = {
            "title": "a run", "before": {"ici": {"model": 8, "data": 2}}, "after": {"ici": {"model": 4, "data": 4}},
            "outcome": "improved", "speedup": 1.25, "summary": "It got faster.", "source": {"text": "a colleague"},
            "confidence": 0.8,
        }  # fmt: skip
        return HistoryRecord.model_validate({"id": id_, **told, **fields})

    return make
