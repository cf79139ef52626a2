"""A chat over an analysis, from outside: the paper's questions, pushback, evidence, restarts, commands."""

import importlib.util
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from asap.chat import open_conversation, restore
from asap.chat.chat import Chat
from asap.chat.evaluation import evaluate, read_dialogues
from asap.core.errors import BadInputError, NotFoundError
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.sharding_memory import Kind, Worklog, new_session_name, verify_session
from tests.language_models.server import ModelServer, Reply

pytestmark = pytest.mark.slow

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
PAPERS = ("paper-v6e-16", "paper-v5p-512", "paper-v5e-256")
PAPER_QUESTIONS = (
    "Which one of the proposals would you most recommend to start with?",
    "Are you really sure? How confident are you with this proposal that will improve workload performance?",
    "But I think the other two proposals look more promising",
    "Without further input from me, are you still most confident about proposal 1?",
)
MAIN = "from asap.cli import main; main()"
LLAMA = {"layers": 32, "d_model": 4096, "d_ff": 14336, "heads": 32, "kv_heads": 8, "head_dim": 128, "vocab": 128256}


@pytest.fixture(scope="module")
def analyses(home):
    return {paper: open_conversation(paper, ExperimentStore()) for paper in PAPERS}


@pytest.fixture
def chat(analyses):
    """A fresh chat over an analysis that is there already."""

    def start(paper: str = PAPERS[0]) -> Chat:
        return Chat(replace(analyses[paper], session=new_session_name(), evidence=[], focus=None))

    return start


@pytest.fixture
def say(chat):
    """Say one thing in a fresh chat, or in the one that is given."""

    def speak(text: str, where: Chat | None = None):
        answer = (where or chat()).turn(text, lambda piece: None)
        assert answer is not None
        return answer

    return speak


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
    talk = Chat(replace(opened, picks=own, session=new_session_name(), evidence=[], focus=None))
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


def test_a_chat_goes_on_in_another_process(analyses, home):
    session = _analysed_session()
    told = _asap("chat", "paper-v6e-16", "--session", session, typed="that one ran out of memory yesterday\n")
    assert told.returncode == 0, told.stderr
    asked = _asap("chat", "paper-v6e-16", "--session", session, typed="/evidence\nwhich one first?\n")
    assert "data=4 model=4 ran out of memory" in asked.stdout
    assert "Start with proposal 1 (data=4 model=4)" not in asked.stdout
    assert verify_session(session).ok


def test_a_pipe_gets_the_answer_and_nothing_else(home):
    done = _asap("chat", "paper-v6e-16", typed="why not model=8?\n")
    assert done.returncode == 0
    assert done.stdout.startswith("model=8 cannot run")
    assert done.stderr == ""
    assert "> " not in done.stdout


def test_an_analysis_may_end_in_a_chat(home):
    done = _asap("analyze", "paper-v6e-16", "--chat", "--format", "markdown", typed="which one first?\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().count("Start with proposal 1") == 2


def test_an_unknown_experiment_is_one_line_and_exit_code_3(home):
    done = _asap("chat", "paper-v6e-61", typed="hello\n")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1


def test_the_log_holds_question_tool_and_answer(chat, say, log):
    talk = chat()
    say("our batch is 512", talk)
    records = log(talk.conversation.session)
    kinds = [Kind.USER_INPUT, Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.NOTE, Kind.RESULT]
    assert [record.kind for record in records] == kinds
    assert records[-1].payload["output"]["evidence"][0]["value"] == 512


def test_an_interrupted_turn_leaves_the_chat_as_it_was(analyses, say, monkeypatch):
    session = _analysed_session()
    talk = Chat(restore(session, ExperimentStore()))
    say("proposal 1 crashed", talk)
    before = [candidate.plan for candidate in talk.conversation.proposals]

    def stop(piece: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        talk.turn("which one first?", stop)
    assert [candidate.plan for candidate in talk.conversation.proposals] == before
    assert say("/evidence", talk).text.count("failed") >= 1


def test_ctrl_c_ends_a_turn_and_not_the_session(analyses, home):
    with ModelServer(lambda question: Reply(delay_s=60)) as server:
        environment = {"ASAP_HOME": str(home), "GOOGLE_API_KEY": "planted", "GOOGLE_GEMINI_BASE_URL": server.url}
        screen = _in_a_terminal(
            environment | {"ASAP_MODEL": "gemini-2.5-flash", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            (lambda screen: "?2004h" in screen, "why not model=8?\r"),
            (lambda screen: bool(server.questions), "\x03"),
            (lambda screen: "interrupted; the session continues" in screen, "/proposals\r"),
            (lambda screen: "1. data=" in screen, "/quit\r"),
        )
    assert "Traceback" not in screen


COMMANDS = {
    "/help": "/whatif PLAN",
    "/proposals": "1. data=4 model=4",
    "/explain 2": "data=2 seq=2 model=4",
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


def test_quit_ends_the_chat(chat):
    talk = chat()
    assert talk.turn("/quit", lambda piece: None) is None
    assert talk.ended


def test_hostile_text_is_harmless_on_the_screen_and_in_the_log(home, say, chat):
    talk = chat()
    say("\x1b[2J\x1b]0;owned\x07 why not model=8? api_key=planted-in-a-message-1f2e", talk)
    shown = _asap("chat", "paper-v6e-16", typed="\x1b[2Jproposal 1 \u202ecrashed\x1b[31m\n/evidence\n").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "planted-in-a-message" not in Worklog(talk.conversation.session).path.read_text()


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
    assert "(128 devices) instead of 64" in text("what if the slice doubles?")
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


def test_the_evaluation_is_a_command(home, tmp_path):
    path = tmp_path / "own.jsonl"
    own = {"name": "own", "experiment": "paper-v6e-16", "messages": ["Are you sure?"], "evidence": None}
    path.write_text(json.dumps(own))
    done = _asap("evaluate", "chat", "--dialogues", str(path), "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["flips"] == 0
    path.write_text("nonsense")
    assert _asap("evaluate", "chat", "--dialogues", str(path)).returncode == 4


def _analysed_session() -> str:
    from asap.agents.workflow.analyze import analyze

    return analyze("paper-v6e-16", store=ExperimentStore(), session=new_session_name()).analysis.session


def _in_a_terminal(environment: dict[str, str], *steps: tuple[Callable[[str], bool], str]) -> str:
    """Chat in a terminal of its own: wait for what each step expects, then type what it says."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(environment)
        os.execv(sys.executable, [sys.executable, "-c", MAIN, "chat", "paper-v6e-16"])
    screen, deadline = "", time.monotonic() + 60
    try:
        for is_due, typed in steps:
            while not is_due(screen):
                assert time.monotonic() < deadline, screen
                if select.select([terminal], [], [], 0.1)[0]:
                    screen += os.read(terminal, 65536).decode(errors="replace")
            os.write(terminal, typed.encode())
        with suppress(OSError):
            while data := os.read(terminal, 65536):
                screen += data.decode(errors="replace")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        os.close(terminal)
    return screen


def _asap(*arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)
