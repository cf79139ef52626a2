import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from asap.profiles.xprof.tables import HloRow, MemoryProfile, StepRow, Summary, XprofTable
from tests.cases import cases

CELLS = st.none() | st.text(max_size=20)
TEXTS = ("category", "hlo_op_name", "bound_by", "tf_op_name")
ZEROS = dict.fromkeys(("occurrences", "total_self_time", "total_self_time_percent", "model_flop_rate", "hbm_bw"), 0)


@given(st.permutations([*TEXTS, *ZEROS, "of no interest"]), st.lists(st.dictionaries(st.sampled_from(TEXTS), CELLS)))
def test_records_take_the_columns_they_know_in_any_order(names, rows):
    complete = [
        {**dict.fromkeys(TEXTS, "x"), **ZEROS, **{k: v for k, v in row.items() if v is not None}} for row in rows
    ]
    cells = [[{"v": row.get(name)} if name in row else None for name in names] for row in complete]
    table = {"cols": [{"id": name} for name in names], "rows": [{"c": row} for row in cells]}
    records = XprofTable.model_validate_json(json.dumps(table)).records(HloRow)
    assert [{name: getattr(record, name) for name in TEXTS} for record in records] == [
        {name: row[name] for name in TEXTS} for row in complete
    ]


@given(st.floats(min_value=0, max_value=1e15, allow_nan=False), st.sampled_from(["", "%", " "]))
def test_numbers_are_read_from_text(value, unit):
    summary = Summary.model_validate({"device_duty_cycle_percent": f"{value!r}{unit}"})
    assert summary.device_duty_cycle_percent == value


@pytest.mark.parametrize("missing", ["", "  ", "-nan", "nan", "inf", "%", None])
def test_a_missing_number_is_unknown_and_not_zero(missing):
    assert Summary.model_validate({"device_idle_time_percent": missing}).device_idle_time_percent is None
    assert StepRow.model_validate({"stepTimeMs": missing}).duration is None


def test_a_column_that_is_gone_or_no_number_is_an_error():
    row = {**ZEROS, "category": "copy", "hlo_op_name": "copy.1", "occurrences": 1, "bound_by": "HBM"}
    assert HloRow.model_validate(row).occurrences == 1
    for field in row:
        with pytest.raises(ValidationError):
            HloRow.model_validate({key: value for key, value in row.items() if key != field})
    with pytest.raises(ValidationError):
        HloRow.model_validate(row | {"occurrences": "many"})


def test_source_is_the_visible_text():
    cell = "<div class='x' title='a.py:1\n&lt;b&gt;'>dir/a &amp; b.py:29</div>"
    row = HloRow.model_validate({**ZEROS, "category": "", "hlo_op_name": "", "bound_by": "", "source_info": cell})
    assert row.source_info == "dir/a & b.py:29"


def test_memory_is_that_of_the_fullest_device_and_not_of_the_host():
    def use(peak: int, capacity: int) -> dict:
        return {"profileSummary": {"peakStats": {"peakBytesInUse": str(peak)}, "memoryCapacity": str(capacity)}}

    allocators = {"0": use(5, 16), "1": use(7, 16), "xla_gpu_host_bfc": use(90, 100), "2": use(9, 0)}
    profile = MemoryProfile.model_validate({"memoryProfilePerAllocator": allocators})
    assert profile.fullest == (7, 16)
    assert MemoryProfile().fullest is None


@cases("device_type, kind")
def test_family_of_the_device(device_type, kind):
    assert Summary(device_type=device_type).kind == kind
