"""What counts as evidence in a chat, and what it changes."""

import importlib.util
from dataclasses import replace

import pytest

from asap.chat import open_conversation, restore
from asap.chat.chat import Chat
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.sharding_memory import Kind, new_session_name
from tests.chat.conversations import PAPERS, analysed_session

pytestmark = pytest.mark.slow
needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")


def test_evidence_takes_a_plan_out_and_the_answer_says_which(chat, say):
    talk = chat()
    first = talk.conversation.proposals[0].plan
    answer = say("that one ran out of memory yesterday", talk)
    assert answer.changed
    assert f"This evidence changes the order: {first} ran out of memory" in answer.text
    assert str(first) not in answer.ranking
    assert f"{first} is excluded" in say("/evidence", talk).text
    assert "excluded by evidence" in say(f"why not {first}?", talk).text
    again = say("that one ran out of memory yesterday", talk)
    assert not again.changed


def test_a_stated_batch_lets_plans_in_that_divide_it(chat, say):
    talk = chat()
    assert "data=16" not in say("/proposals", talk).ranking
    assert "data=16" in say("our batch is 512", talk).ranking


def test_a_measurement_counts_in_place_of_the_prediction(chat, say):
    talk = chat()
    slow = talk.conversation.proposals[1].plan
    answer = say("proposal 2 measured 1.0 s", talk)
    assert answer.ranking[0] == str(slow)
    assert "the engineer: proposal 2 measured 1.0 s" in answer.text
    assert "measured, not predicted" in say("how sure are you?", talk).text


def test_an_agents_own_order_yields_to_evidence_and_to_nothing_else(analyses, say):
    opened = analyses[PAPERS[0]]
    own = tuple(reversed(opened.picks))
    talk = Chat(replace(opened.afresh(new_session_name()), picks=own))
    told = say("our sequence length is 8192", talk)
    assert told.evidence
    assert not told.changed
    assert told.ranking == tuple(map(str, own))
    assert say("proposal 1 ran out of memory", talk).changed


def test_the_figures_of_the_analysis_stand_until_the_run_is_another_one(analyses, say):
    opened = analyses[PAPERS[0]]
    first = opened.analysed[opened.picks[0]]
    relative = first.prediction.relative_step_time.model_copy(update={"value": 0.5, "low": 0.49, "high": 0.51})
    compiled = replace(first, prediction=first.prediction.model_copy(update={"relative_step_time": relative}))
    analysed = opened.analysed | {compiled.plan: compiled}
    talk = Chat(replace(
        opened, analysed=analysed, session=new_session_name(), evidence=[], focus=None,
        _revised_for=None, _revised=None,
    ))  # fmt: skip
    assert "-50.0 %" in say(f"why not {compiled.plan}?", talk).text
    assert "-50.0 %" not in say("our batch is 512", talk).text


@needs_libtpu
def test_the_verdict_of_the_compiler_is_evidence(home, say):
    store = ExperimentStore()
    tiny = Architecture(name="tiny", layers=2, d_model=256, d_ff=512, heads=2, kv_heads=2, head_dim=128, vocab=512)
    store.add(Experiment(
        id="verified-in-a-chat", model=tiny, workload=Workload(global_batch=8192, sequence_length=2048),
        plan=Plan.parse("data=4 remat=full"),
        hardware=HardwareReference(name="v5e-4", chip="v5e", topology=(2, 2), devices=4),
    ))  # fmt: skip
    talk = Chat(open_conversation("verified-in-a-chat", store))
    found = say('/verify "data=4 remat=none"', talk)
    assert "data=4 remat=none does not fit (by the TPU compiler)" in found.text
    assert [item.compiled for item in found.evidence] == [True]
    again = restore(talk.conversation.session, store)
    assert again.evidence == list(found.evidence)
    assert Plan.parse("data=4 remat=none") in again.revised.excluded


def test_the_log_holds_question_tool_and_answer(chat, say, log):
    talk = chat()
    say("our batch is 512", talk)
    records = log(talk.conversation.session)
    kinds = [Kind.USER_INPUT, Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.NOTE, Kind.RESULT]
    assert [record.kind for record in records] == kinds
    assert records[-1].payload["output"]["evidence"][0]["value"] == 512


def test_an_interrupted_turn_leaves_the_chat_as_it_was(analyses, say, monkeypatch):
    session = analysed_session()
    talk = Chat(restore(session, ExperimentStore()))
    say("proposal 1 crashed", talk)
    before = [candidate.plan for candidate in talk.conversation.proposals]

    def stop(piece: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        talk.turn("which one first?", stop)
    assert [candidate.plan for candidate in talk.conversation.proposals] == before
    assert say("/evidence", talk).text.count("failed") >= 1


def test_what_a_figure_is_based_on_names_the_file_of_facts_without_its_folder(say):
    text = say("what is that based on?").text
    assert "the facts of what runs now (" in text
    assert "/" not in text.partition("the facts of what runs now (")[2].partition(")")[0]
