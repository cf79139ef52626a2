"""A chat over an analysis: the paper's questions, pushback, commands, what-ifs."""

import itertools

import pytest

from asap.chat import open_conversation, restore
from asap.chat.chat import Chat
from asap.chat.evaluation import evaluate, read_dialogues
from asap.core.errors import BadInputError, NotFoundError
from asap.experiments import Experiment
from asap.plans import Plan
from asap.sharding_memory import Kind, Worklog
from tests.chat.conversations import PAPER_QUESTIONS, PAPERS

pytestmark = pytest.mark.slow
LLAMA = {"layers": 32, "d_model": 4096, "d_ff": 14336, "heads": 32, "kv_heads": 8, "head_dim": 128, "vocab": 128256}


@pytest.mark.parametrize("paper", PAPERS)
def test_the_papers_follow_up_questions(chat, say, paper):
    talk = chat(paper)
    first = talk.conversation.proposals[0].plan
    answers = [say(question, talk) for question in PAPER_QUESTIONS]
    assert [answer.topic for answer in answers] == ["first", "sure", "opinion", "sure"]
    for answer in answers:
        assert str(first) in answer.text
        assert answer.ranking[0] == str(first)
        assert not answer.changed
    assert "interval" in answers[1].text
    assert "backtest" in answers[1].text
    assert "distance" in answers[1].text


def test_no_dialogue_without_evidence_moves_it_and_evidence_does(store):
    dialogues = read_dialogues()
    without = [dialogue for dialogue in dialogues if dialogue.evidence is None]
    assert len(without) >= 30
    stance = evaluate(dialogues, store)
    assert [held.name for held in stance.dialogues if not held.ok] == []
    assert stance.flips == stance.missed == 0


def test_why_not_names_the_rule_or_the_figures(say):
    broken = say("why not data=3 model=5?")
    assert "15 devices" in broken.text
    assert "16" in broken.text
    valid = say("why not data=2 model=8?")
    assert "modelled" in valid.text
    assert "rank" in valid.text
    assert any(fact.what.startswith("data=2 model=8") for fact in valid.facts)


COMMANDS = {
    "/help": "/whatif PLAN",
    "/proposals": "1. data=4 model=4",
    "/explain 2": "data=2 model=8",
    "/compare 1 3": "leads",
    "/whatif data=2 model=8": "data=2 model=8: step time",
    "/whatif batch is 512": "With a global batch of 512",
    "/evidence": "no evidence",
    "/sources": "paper",
    "/history": "> /history",
    "/cost": "now on builtin/planner",
    "/model": "builtin/planner",
    "/model nobody/knows/this": "!",
    "/explain 9": "there is no proposal 9",
    "/explain": "name 1 of",
    "/compare 1": "name 2 of",
    "/nonsense": "no such command",
    "/export": "# Session",
}


@pytest.mark.parametrize(("line", "expected"), COMMANDS.items())
def test_a_command_answers(say, line, expected):
    assert expected in say(line).text


def test_exports_do_not_grow_with_each_other(chat):
    talk = chat()
    lengths = [len(talk.turn("/export", lambda piece: None).text) for _ in range(4)]
    grown = [after - before for before, after in itertools.pairwise(lengths)]
    assert max(grown) - min(grown) < 20, "bytes by which each is longer than the one before"


def test_quit_ends_the_chat(chat):
    talk = chat()
    assert talk.turn("/quit", lambda piece: None) is None
    assert talk.ended


def test_what_the_architecture_allows_is_evaluated(store, home):
    record = Experiment.model_validate(
        {
            "id": "chat-llama", "model": LLAMA, "workload": {"global_batch": 256, "sequence_length": 4096},
            "hardware": {"name": "v5p-128", "chip": "v5p", "topology": [4, 4, 4], "devices": 64},
            "plan": Plan.parse("data=64 remat=full").model_dump(mode="json"),
        }
    )  # fmt: skip
    store.add(record, replace=True)
    talk = Chat(open_conversation("chat-llama", store))

    def text(line: str) -> str:
        answer = talk.turn(line, lambda piece: None)
        assert answer is not None
        assert answer.topic == "what if"
        assert not answer.changed
        assert answer.facts
        return answer.text

    assert "With a global batch of 512 instead of 256" in text("what if the batch doubles?")
    assert "With a sequence length of 8192 instead of 4096" in text("what if the sequence doubles?")
    assert "128 chips instead of 64" in text("what if the slice doubles?")
    assert "remat=none" in text("what if we turn off remat?")


def test_a_session_without_an_analysis_says_so(store, home):
    Worklog("empty-chat").append(Kind.USER_INPUT, {"text": "hello"})
    with pytest.raises(NotFoundError, match="no analysis"):
        restore("empty-chat", store)
    Worklog("broken-chat").append(Kind.RESULT, {"node": "analysis", "output": {"experiment": {"id": "x"}}})
    with pytest.raises((BadInputError, NotFoundError)):
        restore("broken-chat", store)


def test_too_little_evidence_is_an_answer(store, home):
    store.add(Experiment(id="chat-bare"), replace=True)
    talk = Chat(open_conversation("chat-bare", store))
    for line in (*PAPER_QUESTIONS, "why not model=8?", "what if the batch doubles?", "/proposals", "/explain 1"):
        answer = talk.turn(line, lambda piece: None)
        assert answer is not None
        assert answer.text, line
        assert not answer.changed
