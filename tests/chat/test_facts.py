"""Facts are never booked from free words; from a language model only as they were said, and as reports."""

import pytest

from asap.agents.grounding.catalogue import Catalogues
from asap.chat.chat import Chat
from asap.chat.facts import ModelTools, is_report
from asap.evidence.fact import Claim
from asap.sharding_memory import new_session_name
from tests.cases import cases, kept

KEPT = kept(__file__)
REPHRASED = {report: [form.format(report) for form in KEPT["FORMS"]] for report in KEPT["REPORTS"]}
SAID = "We gave the second one a go on the pod, 4.1 s for every step it made."


@pytest.fixture
def heard(chat):
    """The tools over one message."""

    def hear(message):
        conversation, noted = chat().conversation, []
        return ModelTools(conversation, message, noted.append, Catalogues()), conversation, noted

    return hear


@pytest.fixture
def piped(opened):
    """A chat whose lines are piped in."""
    return Chat(opened("paper-v6e-16").afresh(new_session_name()), origin="piped")


@pytest.mark.slow
@pytest.mark.parametrize("line", [*REPHRASED, *(line for lines in REPHRASED.values() for line in lines)])
def test_no_free_words_put_anything_on_record(say, line):
    answer = say(line)
    assert not answer.evidence
    assert not answer.retracted
    assert not answer.changed


def test_the_same_facts_as_commands_are_on_record(say):
    for line in ("ran 1 = 4.1s", "oom 2", "limit model<=8", "runs batch=64", "ran now = 38% mfu"):
        (fact,) = say(line).evidence
        assert fact.words.startswith(line.split()[0])


@pytest.mark.parametrize("line", [*[*REPHRASED][::4], "proposal 1 ran out of memory", "Step 12: 4.1 s, loss 2.1"])
def test_piped_prose_is_no_fact_and_neither_is_the_number_behind_it(piped, line):
    for text in (line, "1"):
        piped.turn(text, lambda piece: None)
    assert not piped.conversation.evidence


def test_an_exact_command_in_a_pipe_is_a_fact_that_says_so(piped):
    answer = piped.turn("oom 1", lambda piece: None)
    (fact,) = answer.evidence
    assert fact.said_by == "piped in as a command"
    assert fact.said_by in answer.text


def test_no_model_makes_a_fact_of_what_was_piped_in(heard):
    tools, conversation, noted = heard(SAID)
    conversation.inquiry.origin = "piped"
    answer = tools.record("ran 2 = 4.1s", "4.1 s for every step")
    assert not answer["recorded"]
    assert "ran 2 = 4.1 s" in noted[0].text
    assert not conversation.evidence


@pytest.mark.parametrize("line", REPHRASED)
def test_plain_reports_are_reports(line):
    assert is_report(line)


@pytest.mark.parametrize("line", [line for lines in REPHRASED.values() for line in lines])
def test_questions_wishes_and_conditions_are_none(line):
    assert not is_report(line)


def test_a_quoted_fact_is_recorded_and_echoed_with_its_number(heard):
    tools, conversation, noted = heard(SAID)
    answer = tools.record("ran 2 = 4.1s", "4.1 s for every step")
    (fact,) = conversation.evidence
    assert answer["shown"]
    assert (fact.claim, fact.value, fact.plan) == (Claim.STEP_TIME, 4.1, conversation.inquiry.recorded[0].plan)
    assert "/forget 1" in noted[0].text


@cases("command, quote, complaint")
def test_what_was_not_said_so_is_refused(heard, command, quote, complaint):
    tools, conversation, noted = heard(SAID)
    assert complaint in tools.record(command, quote)["error"]
    assert not conversation.evidence
    assert not noted


@pytest.mark.parametrize("lines", REPHRASED.values())
def test_a_model_that_records_what_was_only_asked_is_told_no(heard, lines):
    for line in lines:
        tools, conversation, _ = heard(line)
        for command in ("ran 1 = 4.1s", "oom 2"):
            tools.record(command, line[:400])
        assert not conversation.evidence, line


def test_a_fact_is_taken_back_by_its_number_and_quote(heard):
    tools, conversation, _ = heard(SAID)
    tools.record("ran 2 = 4.1s", "4.1 s for every step")
    again = ModelTools(conversation, "sorry, that was the wrong job", lambda reply: None, Catalogues())
    assert "did not say so" in again.record("forget 1", "it was wrong")["error"]
    assert "no such fact" in again.record("forget 7", "wrong job")["error"]
    again.record("forget 1", "that was the wrong job")
    assert not conversation.evidence
