from dataclasses import replace

import pytest

from asap.chat import open_conversation
from asap.chat.chat import Chat
from asap.experiments import ExperimentStore
from asap.sharding_memory import new_session_name
from tests.chat.conversations import PAPERS
from tests.language_models.fixtures import home, log, shared_home, store, studies

__all__ = ["analyses", "chat", "home", "log", "say", "shared_home", "store", "studies"]


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
