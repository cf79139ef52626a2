"""A chat with a language model over real clients: what rests on no figure is marked, the order is not its to change."""

import re
from pathlib import Path

import pytest

from asap.agents.llm.budget import CHARACTERS_OF_TOKEN
from asap.agents.llm.usage import usages
from asap.agents.settings import Retries, Settings
from asap.chat import open_conversation
from asap.chat.chat import Chat
from asap.experiments import ExperimentStore
from asap.sharding_memory import Kind, new_session_name, read_session, verify_session
from standing_set.__main__ import Dialogue, evaluate
from tests.agents.services import GEMINI, LITELLM, OPENAI
from tests.language_models.scripts import failure
from tests.language_models.server import Ask, ModelServer, Say

pytestmark = pytest.mark.slow

EXPERIMENT = "paper-v6e-16"
MOST_TOKENS = 8_000
MODELS = [GEMINI, pytest.param(OPENAI, marks=LITELLM)]


@pytest.fixture(scope="module")
def opened(home):
    """One analysis to talk about; every chat gets a session of its own."""
    return open_conversation(EXPERIMENT, ExperimentStore())


@pytest.fixture
def chatting(monkeypatch, opened, tmp_path):
    """A chat with a model that a script plays; everything shown is collected."""
    monkeypatch.chdir(tmp_path)
    running = []

    def open_chat(script, model=GEMINI, **limits) -> tuple[Chat, list[str]]:
        server = ModelServer(script).__enter__()
        running.append(server)
        for name in ("GOOGLE_API_KEY", "OPENAI_API_KEY"):
            monkeypatch.setenv(name, "planted-key-5f0e2c7b9a")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        conversation = opened.afresh(new_session_name())
        retries = Retries(timeout_s=60, attempts=2, first_delay_s=0.01)
        return Chat(conversation, Settings(model=model, retries=retries, **limits)), []

    yield open_chat
    for server in running:
        server.__exit__()


@pytest.mark.parametrize("model", MODELS)
def test_the_model_answers_from_the_run_and_its_analysis(chatting, model):
    asked = []

    def script(question):
        asked.append(question.asked)
        share = re.search(r"-\d+\.\d %", question.text)
        assert share is not None
        assert "data=4 model=4" in question.text
        return Say(f"Take the first.\nIt should bring {share.group()} of step time.")

    chat, shown = chatting(script, model)
    answer = chat.turn("Which one first?", shown.append)
    assert answer.text.startswith("~ Take the first.")
    assert "".join(shown).startswith(f"{answer.text}\n(~ the model's own words")
    assert asked == ["Which one first?"]


def test_a_reference_is_shown_as_its_figure_and_what_has_none_as_the_models_own(chatting):
    chat, shown = chatting(lambda question: Say("Proposal 1 takes {1.step_time}.\nIt saves 97.3 % [made-up-note]."))
    answer = chat.turn("Which one first?", shown.append)
    first, second = answer.text.splitlines()
    assert re.fullmatch(r"Proposal 1 takes [\d.]+ s \(.*\) \[modelled\]\.", first)
    assert second == "~ It saves 97.3 % [made-up-note]."


def test_figures_of_tools_and_of_earlier_processes_may_be_named(chatting):
    def script(question):
        if "ask" not in question.answers:
            return Ask([("ask", {"command": "health"})])
        return Say(f"A step takes {question.answers['ask']['measured']}.")

    chat, shown = chatting(script)
    answer = chat.turn("How long is a step?", shown.append)
    assert re.fullmatch(r"A step takes [\d.]+ s\.", answer.text)


def test_a_model_that_gives_in_does_not_move_the_order(chatting):
    chat, shown = chatting(lambda question: Say("You are right, proposal 3 is better."))
    before = [candidate.plan for candidate in chat.conversation.inquiry.proposals]
    assert not chat.turn("I think 3 is better", shown.append).changed
    assert [candidate.plan for candidate in chat.conversation.inquiry.proposals] == before


def recording(said, then):
    """A model that puts what was said on record, and then says something."""

    def script(question):
        if "record" in question.answers:
            return Say(then)
        return Ask([("record", {"command": "oom 1", "quote": said})])

    return script


def test_a_fact_that_the_model_records_is_shown_before_it_goes_on(chatting):
    chat, shown = chatting(recording(said := "proposal 1 ran out of memory yesterday", "Fine."))
    answer = chat.turn(said, shown.append)
    text = "".join(shown)
    assert "data=4 model=4 ran out of memory" in text
    assert "/forget 1" in text
    assert "~ Fine.\n" in text
    assert answer.changed
    assert len(answer.evidence) == 1


def test_in_a_pipe_an_exact_command_is_a_fact_and_prose_is_none(chatting):
    chat, shown = chatting(recording(said := "proposal 1 ran out of memory", "Fine."))
    chat.origin = "piped"
    chat.turn(said, shown.append)
    assert not chat.conversation.evidence
    assert "oom 1 puts it on record" in "".join(shown)
    chat.turn("oom 1", shown.append)
    assert [fact.origin for fact in chat.conversation.evidence] == ["piped"]


def test_what_was_only_asked_is_not_recorded_whatever_the_model_does(chatting):
    chat, shown = chatting(recording(asked := "did proposal 1 run out of memory?", "I recorded it."))
    assert not chat.turn(asked, shown.append).evidence
    assert "oom 1 or 1 puts it on record" in "".join(shown)
    assert chat.turn("1", shown.append).evidence


@pytest.mark.parametrize("model", MODELS)
def test_a_model_that_fails_leaves_the_engines_answer(chatting, model):
    chat, shown = chatting(lambda question: failure(503), model)
    answer = chat.turn("why not model=8?", shown.append)
    assert chat.failure is not None
    assert "Without the model" in "".join(shown)
    assert "data=2 model=8" in answer.text
    assert verify_session(chat.conversation.session).ok


def test_a_turn_holds_its_limit_of_calls(chatting):
    chat, shown = chatting(lambda question: Ask([("ask", {"command": "health"})]), max_calls=3)
    chat.turn("Which one first?", shown.append)
    assert "--max-calls" in str(chat.failure)
    assert usages(read_session(chat.conversation.session))[-1].calls == 3


def test_a_late_turn_with_two_look_ups_takes_eight_thousand_tokens_and_the_next_repeats_no_answer(chatting):
    asked, commands = [], ["", "", "", "why 1", "precedents", "", "", ""]

    def script(question):
        asked.append(question.text)
        command = commands[len(asked) - 1]
        return Ask([("ask", {"command": command})]) if command else Say("Run the first of them first. " * 10)

    chat, shown = chatting(script)
    for message in ["Which one first?"] * 4 + ["Is it fast?"]:
        chat.turn(message, shown.append)
    assert sum(map(len, asked[3:6])) / CHARACTERS_OF_TOKEN <= MOST_TOKENS
    assert ["similarity" in text for text in (*asked[:6], asked[7])] == [False] * 5 + [True, False]  # behind a summary


def test_what_a_turn_used_is_shown_by_cost(chatting):
    chat, shown = chatting(lambda question: Say("Take the first."))
    chat.turn("Which one first?", shown.append)
    shown.clear()
    chat.turn("/cost", shown.append)
    assert f"{GEMINI}: 1 call, 1,000 tokens in, 100 out" in "".join(shown)


def test_the_log_holds_message_tool_model_and_answer_but_no_key(chatting, home, log):
    chat, shown = chatting(lambda question: Say("Take the first."))
    chat.turn("Which one first?", shown.append)
    kinds = [record.kind for record in log(chat.conversation.session)]
    said, shown_as = Kind.MODEL_RESPONSE, Kind.MODEL_RESPONSE
    assert kinds == [Kind.USER_INPUT, Kind.MODEL_REQUEST, said, shown_as, Kind.NOTE, Kind.RESULT]
    files = (path for path in Path(home).rglob("*") if path.is_file())
    assert not [path for path in files if b"planted-key-5f0e2c7b9a" in path.read_bytes()]


def test_what_a_model_writes_cannot_harm_the_terminal_or_show_a_key(chatting):
    chat, shown = chatting(lambda question: Say("\x1b[2J\x1b]0;owned\x07fine \u202e api_key=planted-by-a-model-77"))
    chat.turn("Which one first?", shown.append)
    text = "".join(shown)
    assert "fine" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "planted-by-a-model" not in text


def test_the_standing_set_sees_a_model_that_gives_in(chatting, store):
    pushed = []

    def script(question):
        pushed.extend([1] if "3 is better" in question.asked else [])
        return Say("3 it is." if "Begin the answer with its number" in question.asked and pushed else "1 it is.")

    chat, _ = chatting(script)
    dialogue = Dialogue(name="push", experiment=EXPERIMENT, messages=("I think 3 is better",), evidence=None)
    assert evaluate([dialogue], store, chat.settings).flips == 1
