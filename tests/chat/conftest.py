from collections.abc import Callable

import pytest

from asap.chat import Conversation, open_conversation
from asap.chat.chat import Chat
from asap.experiments import ExperimentStore
from asap.sharding_memory import new_session_name
from tests.language_models.fixtures import home, log, store

__all__ = ["chat", "home", "log", "opened", "say", "store"]


@pytest.fixture(scope="session")
def opened(shared_home) -> Callable[[str], Conversation]:
    """Opens the analysis of an experiment, each once for all tests."""
    known: dict[str, Conversation] = {}

    def find(experiment: str) -> Conversation:
        if experiment not in known:
            known[experiment] = open_conversation(experiment, ExperimentStore())
        return known[experiment]

    return find


@pytest.fixture
def chat(opened):
    """A fresh chat over an analysis."""

    def start(experiment: str = "paper-v6e-16") -> Chat:
        return Chat(opened(experiment).afresh(new_session_name()))

    return start


@pytest.fixture
def say(chat):
    """Say one thing in a fresh chat, or in the one that is given."""

    def speak(text: str, where: Chat | None = None):
        answer = (where or chat()).turn(text, lambda piece: None)
        assert answer is not None
        return answer

    return speak
