"""The chat as a process: pipes, terminals, restarts, hostile text."""

import os
import pty
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from asap.agents.workflow.analyze import analyze
from asap.experiments import ExperimentStore
from asap.sharding_memory import Worklog, new_session_name, verify_session
from tests.command_line import MAIN, run_process
from tests.language_models.server import ModelServer, Reply

pytestmark = pytest.mark.slow


def test_a_chat_goes_on_in_another_process(home, run_command):
    analysed = analyze("paper-v6e-16", store=ExperimentStore(), session=new_session_name())
    session = analysed.analysis.session
    told = run_process("chat", "paper-v6e-16", "--session", session, typed="oom 1\n")
    assert told.returncode == 0, told.stderr
    asked = run_command("chat", "paper-v6e-16", "--session", session, typed="facts\nnext\n")
    assert "data=4 model=4 ran out of memory" in asked.out
    assert "test               data=4 model=4" not in asked.out
    assert verify_session(session).ok


def test_a_pipe_gets_the_answer_and_nothing_else(home):
    done = run_process("chat", "paper-v5e-256", typed="why not model=8?\n")
    assert done.returncode == 0
    assert "model=8" in done.stdout
    assert done.stderr == ""
    assert "> " not in done.stdout


def test_a_line_that_is_not_understood_is_exit_code_2_and_three_commands(home, run_command):
    done = run_command("chat", "paper-v6e-16", typed="the blue one perhaps\n")
    assert done.code == 2, done.err
    assert [line[:4] for line in done.out.splitlines()[1:4]] == ["  1.", "  2.", "  3."]


def test_a_refused_line_is_exit_code_2_and_what_runs_now_has_a_line(home, run_command):
    done = run_command("chat", "paper-v6e-16", typed="line now\nran 9 = 4s\n")
    assert done.code == 2, done.err
    assert "ici_fsdp_parallelism=4" in done.out
    assert "! 9: no such proposal" in done.out


def test_an_unknown_experiment_is_one_line_and_exit_code_3(home, run_command):
    done = run_command("chat", "paper-v6e-61", typed="hello\n")
    assert (done.code, done.out) == (3, "")
    assert done.err.count("\n") == 1


def test_ctrl_c_ends_a_turn_and_not_the_session(opened, home):
    opened("paper-v6e-16")
    with ModelServer(lambda question: Reply(delay_s=60)) as server:
        environment = {"ASAP_HOME": str(home), "GOOGLE_API_KEY": "planted", "GOOGLE_GEMINI_BASE_URL": server.url}
        screen = _in_a_terminal(
            environment | {"ASAP_MODEL": "gemini-2.5-flash", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            (lambda screen: "?2004h" in screen, "why not model=8?\r"),
            (lambda screen: bool(server.questions), "\x03"),
            (lambda screen: "interrupted; the session continues" in screen, "/candidates\r"),
            (lambda screen: "proposals:" in screen, "/quit\r"),
        )
    assert "Traceback" not in screen


def test_hostile_text_is_harmless_on_the_screen_and_in_the_log(home, say, chat, run_command):
    talk = chat()
    say("\x1b[2J\x1b]0;owned\x07 why not model=8? api_key=planted-in-a-message-1f2e", talk)
    shown = run_command("chat", "paper-v6e-16", typed="\x1b[2Jproposal 1 \u202ecrashed\x1b[31m\n/facts\n").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "planted-in-a-message" not in Worklog(talk.conversation.session).path.read_text()


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
