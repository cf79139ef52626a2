import pytest

from asap.experiments.shell.made.printed import printed


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (["echo", "a: 1", ">>", "run.yaml"], "a: 1\n"),
        (["echo", "-n", "a: 1", ">", "run.yaml"], "a: 1"),
        (["echo", "-e", "a: 1\\nb: 2", ">", "run.yaml"], "a: 1\nb: 2\n"),
        (["printf", "a: %s\\nb: %s\\n", "1", "2", ">", "run.yaml"], "a: 1\nb: 2\n"),
        (["printf", '{"stage": %s, "x": {}}\\n', "3", ">", "zero.json"], '{"stage": 3, "x": {}}\n'),
        (["printf", "{0}", ">", "run.yaml"], "{0}"),
        (["printf", "a: %d", "8"], None),
        (["printf", "a: %s"], None),
        (["printf", "100%"], None),
        (["printf"], None),
    ],
)
def test_what_a_command_prints(said, text):
    assert printed(said) == text
