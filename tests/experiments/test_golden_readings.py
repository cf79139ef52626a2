"""Files of every stack are read, refused and written to as on record."""

import pytest

from tests.experiments.golden.readings import cases, outcome

CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=[f"{place}: {case['case']}" for place, case in enumerate(CASES)])
def test_a_file_is_read_as_on_record(case, tmp_path):
    on_record = {key: case[key] for key in ("reads", "refuses", "lines") if key in case}
    assert {"lines": case["lines"]} | outcome(case, tmp_path) == on_record
    assert "\n" not in on_record.get("refuses", "")
