import pytest

from asap.compiler.choice import REFERENCE, Choice
from asap.core.errors import UsageError


@pytest.mark.parametrize("choice", [REFERENCE, Choice(maxtext=True, effort="least"), Choice(train_step="mine:step")])
def test_whose_step_it_was_comes_back_from_a_record(choice):
    assert Choice.from_record(choice.to_record()) == choice


def test_a_record_without_a_choice_is_of_the_reference_step():
    assert Choice.from_record({}) == REFERENCE


def test_no_program_that_a_record_names_is_run(monkeypatch):
    record = Choice(maxtext=True, python="/tmp/theirs").to_record() | {"python": "/tmp/theirs"}
    assert Choice.from_record(record).python == ""
    monkeypatch.setenv("ASAP_PYTHON", "/opt/maxtext/bin/python")
    assert Choice.from_record(record).python == "/opt/maxtext/bin/python"


def test_two_steps_are_one_too_many():
    with pytest.raises(UsageError, match="one step"):
        Choice(train_step="mine:step", maxtext=True)
