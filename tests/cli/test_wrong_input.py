"""Wrong input on the command line: the exit code of its kind, and one line that says what is wrong."""

from tests.cases import cases


@cases("arguments, code, words")
def test_bad_input_is_one_clear_line(asap, arguments, code, words):
    done = asap(*arguments)
    assert done.code == code, done.err
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not {"Traceback", "internal"} & set(done.err.split())
