"""Citations: a principle behind each change, and the precedent that made the same move, for or against."""

import pytest

from asap.experiments import ExperimentStore
from asap.history import Outcome, add, get_record
from asap.knowledge import get_note
from asap.plans import Plan
from asap.proposals.principles import PRINCIPLES
from asap.proposals.reasons.explain import cite
from asap.proposals.selection.precedents import precedent_gains
from asap.study.open_study import open_study
from tests.cases import cases
from tests.proposals.conftest import precedent

MOVES = {
    "halved-seq": ("data=4 seq=4", "data=8 seq=2", Outcome.IMPROVED, 1.25),
    "all-seq": ("data=4 seq=4", "data=2 seq=8", Outcome.OUT_OF_MEMORY, None),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASAP_HOME", str(tmp_path_factory.mktemp("home")))
        add(*(precedent(name, *move) for name, move in MOVES.items()))
        yield open_study("paper-v6e-16", ExperimentStore())


def precedents(study, plan):
    return [citation for citation in cite(study, Plan.parse(plan)) if citation.kind == "precedent"]


def test_every_principle_resolves_to_a_note(study):
    principles = [c for c in cite(study, Plan.parse("data=2 model=8")) if c.kind == "principle"]
    assert len({citation.id for citation in principles}) == len(principles) > 0
    for citation in principles:
        assert get_note(citation.id).citation.url == citation.url


@pytest.mark.parametrize("principle", PRINCIPLES.values())
def test_the_note_of_a_principle_exists(principle):
    assert get_note(principle.note).title


def test_the_same_move_in_a_run_like_this_one_is_cited(study):
    (precedent,) = precedents(study, "data=8 seq=2")
    assert get_record(precedent.id).after == Plan.parse("data=8 seq=2")
    assert precedent.supports.startswith("The same move was faster (1.25 times as fast)")
    assert precedent.source == precedent.title
    assert "\x1b" not in precedent.title


def test_a_precedent_that_failed_is_cited_as_such(study):
    (precedent,) = precedents(study, "data=2 seq=8")
    assert precedent.id == "all-seq"
    assert "ran out of memory" in precedent.supports
    assert precedent.source == f"Against it: {precedent.title}"
    assert not {citation.id for citation in precedents(study, "replica=16")} & set(MOVES)


TO = Plan.parse("data=8 seq=2")


@cases("outcome, speedup, sign")
def test_a_run_speaks_of_time_only_where_both_steps_were_measured(monkeypatch, tmp_path, outcome, speedup, sign):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    study = open_study("paper-v6e-16", ExperimentStore())
    before = precedent_gains(study, [TO])[TO]
    add(precedent("halved-seq", "data=4 seq=4", str(TO), outcome, speedup))
    added = precedent_gains(study, [TO])[TO] - before
    assert (added > 0) - (added < 0) == sign
