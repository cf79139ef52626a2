"""Turns of a chat without a language model: commands, free words, what is offered, what is on record."""

import pytest

from asap.agents.workflow.analyze import analyze
from asap.chat import open_conversation, restore
from asap.chat.chat import NOTHING, Chat
from asap.chat.verbs import USAGE
from asap.experiments import ExperimentStore
from asap.experiments.create import Statement
from asap.sharding_memory import Kind, read_session
from tests.cases import cases, kept

pytestmark = pytest.mark.slow
COMMANDS = tuple(kept(__file__)["COMMANDS"])


@pytest.mark.parametrize("experiment", ExperimentStore().ids())
def test_every_command_answers_on_every_bundled_run_or_says_what_it_lacks(chat, experiment):
    talk = chat(experiment)
    for line in COMMANDS:
        answer = talk.turn(line, lambda piece: None)
        assert answer is not None, line
        assert answer.text.strip(), line
        assert answer.topic != NOTHING, line
        lines = answer.text.splitlines()
        assert not answer.text.startswith("! ") or (len(lines) == 1 and len(lines[0]) < 400), (line, answer.text)


def test_every_verb_is_among_the_commands_that_are_tested():
    tested = {line.split()[0] for line in COMMANDS}
    assert set(USAGE) - tested <= {"verify", "try", "quit"}


def test_free_words_show_what_was_understood_and_once_that_a_model_would_understand_more(chat, say):
    answer, again = map(say, ["what makes my training so slow?"] * 2, [chat()] * 2)
    assert answer.understood == "bottleneck"
    assert answer.text.startswith("› bottleneck\n")
    assert ("--llm" in answer.text, "--llm" in again.text) == (True, False)


def test_what_is_not_clear_is_offered_and_chosen_by_number(chat, say):
    talk = chat()
    offered = say("the blue one perhaps?", talk)
    assert offered.topic == NOTHING
    assert 1 <= len(offered.offered) <= 3
    assert talk.lost
    assert say("1", talk).topic != NOTHING
    assert say("1", talk).topic == NOTHING or not talk.conversation.offered


def test_a_misspelt_command_is_named(say):
    assert "did you mean compare?" in say("/compair 1 2").text
    assert "did you mean bottleneck?" in say("/botleneck").text


@cases("typed, meant")
def test_a_misspelt_command_is_offered_first_as_it_was_meant(say, typed, meant):
    offered = say(typed)
    assert offered.understood == meant or offered.offered[0] == meant
    assert not offered.retracted


def test_a_supposition_holds_for_its_question_alone(chat, say):
    talk = chat("llama-8b-tensor-16")
    before = say("memory", talk).text
    say("what if batch=2048", talk)
    assert say("memory", talk).text == before


def test_a_fact_moves_the_order_and_is_taken_back(chat, say):
    talk = chat()
    before = talk.conversation.order
    told = say("oom 1", talk)
    assert told.changed
    assert talk.conversation.order != before
    assert "/forget 1" in told.text
    assert say("/forget 1", talk).retracted == told.evidence
    assert talk.conversation.order == before


def test_another_process_goes_on_where_one_stopped(say, opened):
    from asap.agents.workflow.analyze import analyze

    session = analyze("paper-v6e-16", store=ExperimentStore()).analysis.session
    talk = Chat(restore(session, ExperimentStore()))
    say("oom 1", talk)
    say("the blue one perhaps?", talk)
    again = restore(session, ExperimentStore())
    assert (again.evidence, again.order) == (talk.conversation.evidence, talk.conversation.order)
    assert again.offered == talk.conversation.offered


def test_a_chat_goes_on_with_what_was_stated_and_says_which_analysis_that_is(home, store, tmp_path, say):
    file, here, there = tmp_path / "train.yml", Statement(hardware="v5e-64"), Statement(hardware="v5e-128")
    file.write_text("model_name: llama3.1-8b\nper_device_batch_size: 2\nmax_target_length: 8192\nremat_policy: full\n")
    first = open_conversation(str(file), store, stated=here)
    say("oom 1", Chat(first))
    other, again, latest = (
        open_conversation(str(file), store, **said) for said in ({"stated": there}, {"stated": here}, {})
    )
    assert (again.session, len(again.evidence), other.evidence) == (first.session, 1, ())
    assert latest.session in (again.session, other.session)
    opening = " ".join(again.opening("train.yml"))
    assert "`asap analyze train.yml --hardware v5e-64` analyses it again. On record, 1:" in opening
    anew = analyze(str(file), store=store, stated=here, facts=None)
    assert anew.analysis.warnings[0].startswith("on record from an earlier chat: ")
    assert first.evidence[0].plan not in [one.plan for one in anew.analysis.proposals]
    assert open_conversation(str(file), store, session=anew.analysis.session).evidence == again.evidence


def test_every_turn_is_on_record_with_its_query(chat, say):
    talk = chat()
    say("what makes my training so slow?", talk)
    kinds = [record.kind for record in read_session(talk.conversation.session)]
    assert kinds == [Kind.USER_INPUT, Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.RESULT]


def test_quit_ends_the_chat(chat):
    talk = chat()
    assert talk.turn("quit", lambda piece: None) is None
    assert talk.ended
