"""Causes beside the resource: planted in recorded steps of a known truth (``scripts/planted_steps.py``)."""

import pytest

from asap.diagnosis import diagnose
from asap.diagnosis.catalogue import catalogue
from asap.hardware import load_chip
from asap.profiles import Operation, Profile
from asap.traces.recording import read_graph, read_recording
from asap.traces.summary import report_replay
from planted_steps import FAULTS, SIZES, record
from tests.cases import cases

H100 = load_chip("h100")


def _diagnosed(fault, share, folder):
    record(fault, share, folder)
    return diagnose(read_recording(folder), chip=H100, replay=report_replay(read_graph(folder)))


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=list(FAULTS))
def test_a_planted_cause_is_named_first_or_second_with_its_bound(number, tmp_path):
    name, share = list(FAULTS)[number], SIZES[number % len(SIZES)]
    causes = _diagnosed(FAULTS[name], share, tmp_path).causes
    found = next((cause for cause in causes[:2] if cause.name == name.partition(":")[0]), None)
    assert found, [cause.name for cause in causes]
    assert found.share == pytest.approx(share, rel=0.25)
    assert 0 < found.gain <= found.share * 1.0001
    assert found.advice in found.statement


def test_a_healthy_step_shows_no_cause(tmp_path):
    assert not _diagnosed(lambda run, length: None, 0.001, tmp_path).causes


def test_loading_beside_the_step_costs_nothing(tmp_path):
    def beside(run, length):
        run.event("user_annotation", "enumerate(DataLoader)#_Next.__next__", run.host, length, thread=2)

    assert "slow_loader" not in [cause.name for cause in _diagnosed(beside, 0.001, tmp_path).causes]


def test_every_cause_has_its_words():
    assert len(catalogue()) >= 30
    for entry in catalogue():
        assert entry.advice.keys() >= {"pytorch", "xla"}
        assert entry.source
        assert isinstance(entry.gain, str) or 0 < entry.gain <= 1


@pytest.mark.parametrize("stack", ["megatron", "maxtext", None])
def test_advice_is_in_the_words_of_the_stack(stack):
    operation = Operation(name="all-gather.5", category="all-gather", fraction=0.4, collective="all-gather")
    advice = diagnose(Profile(source="test", operations=(operation,)), stack=stack).causes[0].advice
    assert ("--overlap-param-gather" in advice) == (stack == "megatron")


@cases("path, cause, name, category")
def test_the_path_of_the_users_operation_or_its_name_tells_the_cause(path, cause, name, category):
    operation = Operation(name=name, category=category, fraction=0.4, operator=path)
    found = diagnose(Profile(source="test", operations=(operation,)))
    assert [each.name for each in found.causes] == [cause] * (cause is not None)
    assert f"({name[:40]} 40.0 %)" in found.statement
