import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.diagnosis import Bottleneck
from asap.history.query import NEUTRAL, HistoryQuery
from asap.history.record import HistoryRecord
from asap.history.similarity import WEIGHTS, FeatureTable, chip_likeness, similarity
from asap.plans import Mesh, Plan
from tests.cases import kept


def a_record(**fields):
    told = {"title": "t", "summary": "s", "source": {"text": "x"}, "confidence": 0.5, "outcome": "improved"}
    return HistoryRecord.model_validate({"id": "x", **told, "other_changes": ("something",), **fields})


def score(record, **query):
    table = FeatureTable.of([record])
    return float(similarity(table.compare(HistoryQuery(**query), None))[0])


KNOWN = kept(__file__)["KNOWN"]


def test_weights_are_shares():
    assert sum(WEIGHTS.values()) == pytest.approx(1)


def test_what_is_unknown_speaks_neither_for_nor_against():
    assert score(a_record(), bottleneck="hbm", chip="v5p", devices=16, parameters=7e9) == NEUTRAL
    assert score(a_record(**KNOWN)) == NEUTRAL


def test_the_same_run_is_most_similar():
    same = {"bottleneck": "hbm", "bound": "hbm", "chip": "v5p", "devices": 16, "parameters": 7e9}
    assert score(a_record(**KNOWN), **same, plan=Plan.parse("data=16")) == pytest.approx(1 - WEIGHTS["text"] / 2)


@pytest.mark.parametrize(("nearer", "farther"), [
    ({"bottleneck": "hbm"}, {"bottleneck": "compute"}), ({"bound": "hbm"}, {"bound": "compute"}),
    ({"chip": "v5p"}, {"chip": "v4"}), ({"chip": "v4"}, {"chip": "h100"}), ({"devices": 16}, {"devices": 32}),
    ({"devices": 32}, {"devices": 256}), ({"parameters": 7e9}, {"parameters": 70e9}),
    ({"plan": Plan.parse("data=16")}, {"plan": Plan.parse("data=8 model=2")}),
    ({"plan": Plan.parse("data=8 model=2")}, {"plan": Plan.parse("model=16")}),
])  # fmt: skip
def test_nearer_is_more_similar(nearer, farther):
    assert score(a_record(**KNOWN), **nearer) > score(a_record(**KNOWN), **farther)


def test_chips_are_alike_in_kind_and_measure():
    assert chip_likeness("v5p", "TPU v5p") == 1
    assert 0 < chip_likeness("v5p", "v5e") < chip_likeness("v5p", "v4") < 1
    assert chip_likeness("v5p", "h100") == 0
    assert chip_likeness("Unheard-of", "unheard-of") == 1
    assert np.isnan(chip_likeness("unheard-of", "v5p"))


DEGREE = st.sampled_from([1, 2, 4, 16])
PLAN = st.none() | st.builds(Mesh, data=DEGREE, seq=DEGREE, model=DEGREE).map(lambda mesh: Plan(ici=mesh))
CHIP = st.sampled_from([None, "v5p", "v6e", "h100", "mine"])


@given(
    bottleneck=st.none() | st.sampled_from(Bottleneck), chips=st.tuples(CHIP, CHIP),
    parameters=st.tuples(st.none() | st.floats(1e6, 1e13), st.none() | st.floats(1e6, 1e13)),
    plans=st.tuples(PLAN, PLAN),
)  # fmt: skip
def test_similarity_is_a_share_and_symmetric_in_plans(bottleneck, chips, parameters, plans):
    def one_way(first, second):
        record = a_record(
            bottleneck=bottleneck, hardware={"chip": chips[0]}, model={"parameters": parameters[0]},
            before=plans[first],
        )  # fmt: skip
        devices = plans[second].devices if plans[second] else None
        query = {"chip": chips[1], "parameters": parameters[1], "plan": plans[second], "devices": devices}
        return score(record, bottleneck=bottleneck, **query)

    assert 0 <= one_way(0, 1) <= 1
    assert one_way(0, 1) == pytest.approx(one_way(1, 0))
