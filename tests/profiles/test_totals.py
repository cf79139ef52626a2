"""What operations take together, and what each would save on the roofline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.profiles import Operation, Profile
from asap.profiles.profile import Total
from asap.reports.profile_facts import by_recoverable, roofline_columns, roofline_row, total_rows

OPERATIONS = st.builds(
    Operation,
    name=st.sampled_from("abc"),
    category=st.sampled_from(("matmul", "attention", "other")),
    fraction=st.floats(0.001, 1.0),
    roofline_efficiency=st.none() | st.floats(0.0, 1.2),
    opaque=st.booleans(),
)


@given(st.lists(OPERATIONS, max_size=8))
def test_totals_by_category_lose_nothing_and_begin_with_the_most(operations):
    totals = Profile(source="a test", operations=tuple(operations)).categories
    assert sum(one.fraction for one in totals) == pytest.approx(sum(one.fraction for one in operations))
    assert [one.fraction for one in totals] == sorted((one.fraction for one in totals), reverse=True)


@given(st.lists(OPERATIONS, max_size=8))
def test_an_operation_saves_no_more_than_it_takes_and_the_unknown_come_last(operations):
    found = by_recoverable(operations)
    known = [one.recoverable for one in found if one.recoverable is not None]
    assert all(0 <= one.recoverable <= one.fraction for one in found if one.recoverable is not None)
    assert known == sorted(known, reverse=True)
    assert all(one.recoverable is None for one in found[len(known) :])


def test_rows_have_a_cell_for_each_column():
    slow = Operation(name="gemm", category="matmul", fraction=0.4, time_s=0.2, roofline_efficiency=0.25)
    profile = Profile(source="a test", operations=(slow,), modules=(Total(name="MLP", fraction=0.1),))
    assert dict(zip(roofline_columns("step"), roofline_row(slow), strict=True))["saves at most"] == "30.00 %"
    assert total_rows(profile.modules, profile.extent_s, 3) == [("10.00 %", "50.0 ms", "MLP")]
    assert total_rows(profile.categories, None, 3) == [("40.00 %", "", "matmul")]
