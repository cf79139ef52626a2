"""Fixtures of every room that runs the agents: a home, a store, the studies, the worklog."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from asap.answers.inquiries import Inquiries
from asap.experiments import ExperimentStore
from asap.sharding_memory import Kind, read_session
from tests.language_models.server import ModelServer, Script

ADDRESSES = ("GOOGLE_GEMINI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_API_BASE", "OLLAMA_API_BASE")


@pytest.fixture(scope="module", autouse=True)
def home(shared_home):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASAP_HOME", str(shared_home))
        yield shared_home


@pytest.fixture
def store():
    return ExperimentStore()


@pytest.fixture
def studies(store):
    return Inquiries(store)


@pytest.fixture
def log():
    """What a session has on record, of some kinds only if they are named."""

    def read(session: str, *kinds: Kind):
        return [record for record in read_session(session) if not kinds or record.kind in kinds]

    return read


@pytest.fixture
def serving(monkeypatch) -> Iterator[Callable[[Script], ModelServer]]:
    """Starts a server at which all clients look."""
    with ExitStack() as running:

        def serve(script: Script, **options) -> ModelServer:
            server = running.enter_context(ModelServer(script, **options))
            for name in ADDRESSES:
                monkeypatch.setenv(name, server.url)
            return server

        yield serve
