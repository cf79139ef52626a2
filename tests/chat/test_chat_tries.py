"""Plans tried from the chat: what is a wish, what is asked first, and what is put on record."""

from pathlib import Path

import pytest

from asap.chat import open_conversation
from asap.chat.chat import Chat
from asap.chat.session import RunCommand
from asap.evidence.fact import EVIDENCE
from asap.experiments import ExperimentStore
from asap.sharding_memory import new_session_name, read_session
from tests.cases import kept

STEPS = kept(__file__)["STEPS"]
NO_MEMORY = kept(__file__)["NO_MEMORY"]


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
        conversation = analysed.afresh(new_session_name())
        settings = "{config}" if config else "{overrides}"
        how = RunCommand(f"sh '{trainer}' {settings}", agreed=agreed, config=config)
        return Chat(conversation, interactive=interactive, run_command=how)

    return opened


def said(chat: Chat, *lines: str) -> str:
    answers = [chat.turn(line, lambda text: None) for line in lines]
    return answers[-1].text if answers[-1] else ""


@pytest.mark.process
@pytest.mark.slow
def test_a_run_is_asked_for_with_its_cost_and_its_outcome_anchors_predictions(chat, starts):
    talk = chat(interactive=True)
    asked = said(talk, "try 1")
    assert "on 256 x TPU v5e once, and costs about" in asked
    assert "Spend it? The same command again runs it: try 1" in asked
    assert not starts.exists()
    said(talk, "thanks", "memory 1")
    assert not starts.exists()
    plan = talk.conversation.order[0]
    assert "On record" in said(talk, "try 1", "try 1")
    assert len(starts.read_text().splitlines()) == 1
    (fact,) = talk.conversation.evidence
    assert (fact.plan, fact.claim.value) == (plan, "measured step time")
    assert fact.said_by.startswith("measured by session ")
    notes = [record for record in read_session(talk.conversation.session) if record.fields.get("event") == EVIDENCE]
    assert len(notes) == 1
    assert "measured" in said(talk, "/facts")


@pytest.mark.process
@pytest.mark.slow
def test_in_a_pipe_nothing_is_spent_without_consent(chat, starts):
    talk = chat()
    assert "Nobody is here to agree" in said(talk, "try 1")
    said(talk, "try 1")
    assert not starts.exists()
    assert "ran out of memory" in said(chat(NO_MEMORY, agreed=True), "try 1")
    assert len(starts.read_text().splitlines()) == 1


@pytest.mark.process
@pytest.mark.slow
def test_a_launcher_may_read_its_settings_from_a_file(chat, starts, tmp_path):
    config = tmp_path / "mine.yml"
    config.write_text("ici_tensor_parallelism: 16\n")
    reads = 'cat "$1" >> STARTS; for step in $(seq 30); do echo "completed step: $step, seconds: 6.0, loss: 9"; done'
    talk = chat(reads, agreed=True, config=config)
    tensor = talk.conversation.order[0].degree("model")
    assert "On record" in said(talk, "try 1")
    assert f"ici_tensor_parallelism: {tensor}\n" in starts.read_text()
    assert config.read_text() == "ici_tensor_parallelism: 16\n"
