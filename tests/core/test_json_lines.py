import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import BadInputError, NotFoundError
from asap.core.files import read_json_lines


@given(st.lists(st.text(alphabet="a\u2028\u2029\x85\x0b\x1c\r é", min_size=1)))
def test_only_a_newline_ends_a_line(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "file.jsonl"
    path.write_bytes("\n".join(lines).encode())
    assert [text for _, text in read_json_lines(path)] == [line for line in lines if line.strip()]


def test_places_count_blank_lines_too(tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_text('{}\n\n{"a": 1}\n')
    assert [place.rpartition(":")[2] for place, _ in read_json_lines(path)] == ["1", "3"]


def test_what_cannot_be_read_says_why(tmp_path):
    with pytest.raises(NotFoundError, match="no such file"):
        list(read_json_lines(tmp_path / "missing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError, match="as text"):
        list(read_json_lines(tmp_path / "binary"))
