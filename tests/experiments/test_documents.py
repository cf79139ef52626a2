import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import BadInputError, ConfigError, NotFoundError
from asap.experiments.files.documents import read_document
from tests.cases import kept

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}]\n" for i in range(1, 20))


@pytest.fixture
def write(tmp_path):
    def put(content: str | bytes, name: str = "run.yml"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put


def test_values_are_typed_and_know_their_line(write):
    document = read_document(write("# comment\na: 1\nb: [1.5, true, null, x]\nc:\n  d: '2'\ne: 2026-01-02\n"))
    assert document.values == {"a": 1, "b": [1.5, True, None, "x"], "c": {"d": "2"}, "e": "2026-01-02"}
    assert document.lines == {"a": 2, "b": 3, "c": 4, "e": 6}


def test_text_of_two_bytes_is_told_by_its_first(write):
    assert read_document(write("a: é\n".encode("utf-16"))).values == {"a": "é"}


def test_an_alias_stands_for_what_its_anchor_names(write):
    text = "base: &base {lr: 1, steps: [1, 2]}\nsame: *base\nmine: {<<: *base, lr: 2}\n"
    text += "both: {<<: [{a: 1, b: 1}, {b: 2, c: 2}]}\n"
    values = read_document(write(text)).values
    assert values["same"] == {"lr": 1, "steps": [1, 2]}
    assert values["mine"] == {"lr": 2, "steps": [1, 2]}
    assert values["both"] == {"a": 1, "b": 1, "c": 2}
    values["same"]["lr"] = 3
    assert values["base"]["lr"] == 1


def test_json_is_read_as_json(write):
    assert read_document(write('{"a": {"b": [1, "x"]}}', "c.json")).values == {"a": {"b": [1, "x"]}}


@pytest.mark.parametrize(("content", "said"), [
    *kept(__file__)["MALFORMED"],
    (BOMB, r"run\.yml:\d+: has aliases .* more than 10,000 values"), ("[" * 100_000, "nested too deeply"),
    (b"a: 1\nb: \xff\xfe\n", r"run\.yml:2: is not UTF-8"), (b"\x00\x01\x02", "is not YAML"),
    ("a: " + "1" * 5000, "cannot be read"), ("a: x\n" + "#" * 1_000_001, "larger than"),
    (b"%PDF-1.7", "is a PDF, which is not read"), (b"\x1f\x8b\x08", "is an archive"),
])  # fmt: skip
def test_bad_yaml_is_one_line_that_says_where(write, content, said):
    with pytest.raises(ConfigError, match=said) as caught:
        read_document(write(content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("content", "said"), [
    ('{"a": 1,\n "b" 2}', r"c\.json:2: is not JSON"), ('{"a": 1, "a": 2}', "a is given twice"),
    ("[" * 100_000, "cannot be read"), ('{"a": ' + "1" * 5000 + "}", "cannot be read"),
])  # fmt: skip
def test_bad_json_is_one_line_that_says_where(write, content, said):
    with pytest.raises(ConfigError, match=said):
        read_document(write(content, "c.json"))


def test_what_is_not_a_file_is_said(tmp_path):
    with pytest.raises(NotFoundError, match="no such file"):
        read_document(tmp_path / "nothing.yml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(tmp_path)


@given(content=st.binary(max_size=200) | st.text("{}[]:&*!-?|>'\"#\n\t a1,", max_size=80))
def test_no_content_breaks_the_reader(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("f") / "x.yml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with contextlib.suppress(BadInputError):
        assert isinstance(read_document(path).values, dict)
