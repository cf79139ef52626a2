import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from asap.core.units import Provenance, Quantity
from asap.history.files import facts, line_of, parse_record
from asap.history.record import HistoryRecord, Model, Outcome, Source, size_class
from asap.plans import Mesh, Plan


def seconds(value, unit="s"):
    return Quantity(value=value, unit=unit, provenance=Provenance.MEASURED, source="log")


@pytest.mark.parametrize(("fields", "complaint"), [
    ({"after": {"ici": {"model": 8, "data": 2}}}, "nothing changed"),
    ({"hardware": {"devices": 512}}, "has 16 devices, the hardware 512"),
    ({"outcome": "slower"}, "does not mean slower"), ({"speedup": 0.9}, "does not mean improved"),
    ({"outcome": "out_of_memory"}, "has no measurement after"),
    ({"measured_before": seconds(10), "measured_after": seconds(5)}, "the measurements say 2"),
    ({"measured_before": seconds(10), "measured_after": seconds(0)}, "not positive"),
    ({"measured_before": seconds(9), "measured_after": seconds(8, "tokens/s")}, "measured in s before"),
    ({"confidence": 1.5}, "less than or equal to 1"), ({"id": "../up"}, "pattern"),
    ({"source": {"text": ""}}, "at least 1 character"), ({"surprise": 1}, "Extra inputs"),
])  # fmt: skip
def test_a_record_that_contradicts_itself_is_refused(record, fields, complaint):
    with pytest.raises(ValidationError, match=complaint):
        record(**fields)


def test_a_rate_counts_the_other_way_round(record):
    rate = {"unit": "tokens/s", "provenance": "measured", "source": "log"}
    made = record(measured_before={"value": 100, **rate}, measured_after={"value": 125, **rate})
    assert made.speedup == 1.25


def test_sizes_fall_into_classes_of_four():
    assert [size_class(count) for count in (None, 5e8, 1e9, 7e9, 70e9, 671e9)] == [
        None, "below 1B", "1B to 4B", "4B to 16B", "64B to 256B", "above 256B",
    ]  # fmt: skip


TEXT = st.text(min_size=1, max_size=80)
DEGREE = st.sampled_from([1, 2, 4, 8])
MESH = st.builds(Mesh, replica=DEGREE, data=DEGREE, seq=DEGREE, model=DEGREE, expert=DEGREE, stage=DEGREE)
PLAN = st.builds(Plan, ici=MESH, microbatches=st.none() | st.integers(1, 64))
OUTCOME = st.sampled_from([(Outcome.IMPROVED, 1.5), (Outcome.SLOWER, 0.5), (Outcome.OUT_OF_MEMORY, None)])


@given(
    title=TEXT, summary=TEXT, changes=st.lists(TEXT, min_size=1, max_size=3).map(tuple), before=st.none() | PLAN,
    after=st.none() | PLAN, outcome=OUTCOME, parameters=st.none() | st.floats(1e6, 1e13),
)  # fmt: skip
def test_a_record_survives_its_line(title, summary, changes, before, after, outcome, parameters):
    made = HistoryRecord(
        id="x", title=title, summary=summary, other_changes=changes, before=before, after=after, outcome=outcome[0],
        speedup=outcome[1], model=Model(name=title, parameters=parameters), source=Source(text="s"), confidence=0.5,
    )  # fmt: skip
    line = line_of(made)
    assert "\n" not in line
    assert parse_record(line, "here") == made
    assert facts(parse_record(line, "here")) == facts(made)
