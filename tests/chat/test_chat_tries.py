"""Plans tried from the chat: what is a wish, what is asked first, and what is put on record."""

from dataclasses import replace
from pathlib import Path

import pytest

from asap.chat import open_conversation
from asap.chat.chat import Chat
from asap.chat.tries import RunCommand, doubted, wanted
from asap.evidence.record import EVIDENCE
from asap.experiments import ExperimentStore
from asap.sharding_memory import new_session_name, read_session

STEPS = """
echo "$@" >> STARTS
for word in "$@"; do echo "Config param ${word%%=*}: ${word#*=}"; done
for step in $(seq 30); do echo "completed step: $step, seconds: 6.0, loss: 9.1"; done
"""
NO_MEMORY = """
echo "$@" >> STARTS
echo "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 22.23G of 15.75G hbm."
exit 1
"""


@pytest.fixture(scope="module")
def analysed(home):
    return open_conversation("llama-8b-tensor-16", ExperimentStore())


@pytest.fixture
def starts(tmp_path):
    """Where the trainer notes its starts."""
    return tmp_path / "starts"


@pytest.fixture
def chat(analysed, tmp_path, starts):
    """A chat that may run a trainer, which is a script."""

    def opened(
        script: str = STEPS, *, agreed: bool = False, interactive: bool = False, config: Path | None = None
    ) -> Chat:
        trainer = tmp_path / "train.sh"
        trainer.write_text(script.replace("STARTS", str(starts)))
        conversation = replace(analysed, session=new_session_name(), evidence=[], recorded=[], focus=None)
        settings = "{config}" if config else "{overrides}"
        how = RunCommand(f"sh '{trainer}' {settings}", agreed=agreed, config=config)
        return Chat(conversation, interactive=interactive, run_command=how)

    return opened


def said(chat: Chat, *lines: str) -> str:
    answers = [chat.turn(line, lambda text: None) for line in lines]
    return answers[-1].text if answers[-1] else ""


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("try proposal 2", "proposal 2"),
        ("Please run 2!", "2"),
        ("ok, test the first one then", "the first one"),
        ("compile it", None),
        ("try it", ""),
        ("can you measure that one?", ""),
        ("try data=64 model=4 remat=full", "data=64 model=4 remat=full"),
        ("try a larger batch", None),
        ("run 2 took 3 s", None),
        ("we tried proposal 2", None),
        ("run rm -rf /", None),
    ],
)
def test_a_wish_to_try_names_a_plan_and_nothing_else(line, what):
    assert wanted(line) == what


def test_a_doubt_ends_with_really():
    assert doubted("and with less rematerialisation, really?")
    assert not doubted("it is really fast")
    assert not doubted("are you sure?")


@pytest.mark.process
@pytest.mark.slow
def test_a_run_is_asked_for_with_its_cost_and_its_outcome_anchors_predictions(chat, starts):
    talk = chat(interactive=True)
    asked = said(talk, "try proposal 1")
    assert "on 256 x TPU v5e once, and costs about" in asked
    assert 'Spend it? "Yes" runs it.' in asked
    assert not starts.exists()
    said(talk, "thanks", "yes")
    assert not starts.exists()
    plan = talk.conversation.order[0]
    ran = said(talk, "try proposal 1", "yes")
    assert "Recorded as evidence" in ran
    assert len(starts.read_text().splitlines()) == 1
    (fact,) = talk.conversation.evidence
    assert (fact.plan, fact.claim.value) == (plan, "measured step time")
    assert fact.said_by.startswith("measured by session ")
    notes = [record for record in read_session(talk.conversation.session) if record.fields.get("event") == EVIDENCE]
    assert len(notes) == 1
    assert "measured: " in said(talk, "/facts")


@pytest.mark.process
@pytest.mark.slow
def test_in_a_pipe_nothing_is_spent_without_consent(chat, starts):
    talk = chat()
    assert "Nothing was run" in said(talk, "try proposal 1")
    said(talk, "yes")
    assert not starts.exists()
    lost = said(chat(NO_MEMORY, agreed=True), "try proposal 1")
    assert "ran out of memory" in lost
    assert len(starts.read_text().splitlines()) == 1


@pytest.mark.process
@pytest.mark.slow
def test_a_launcher_may_read_its_settings_from_a_file(chat, starts, tmp_path):
    config = tmp_path / "mine.yml"
    config.write_text("ici_tensor_parallelism: 16\n")
    reads = 'cat "$1" >> STARTS; for step in $(seq 30); do echo "completed step: $step, seconds: 6.0, loss: 9"; done'
    talk = chat(reads, agreed=True, config=config)
    tensor = talk.conversation.order[0].degree("model")
    assert "Recorded as evidence" in said(talk, "try proposal 1")
    assert f"ici_tensor_parallelism: {tensor}\n" in starts.read_text()
    assert config.read_text() == "ici_tensor_parallelism: 16\n"


@pytest.mark.slow
def test_a_doubt_about_less_recomputation_is_answered_with_a_figure_and_an_offer(chat):
    talk = chat(interactive=True)
    answer = said(talk, "explain proposal 1", "and with less rematerialisation, really?")
    assert "remat=full" not in answer
    assert 'Say "try it", and it is run with your command' in answer
    assert f"This runs {talk.conversation.focus}" in said(talk, "try it")
