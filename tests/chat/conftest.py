from collections.abc import Callable
from dataclasses import replace

import pytest

from asap.chat import open_conversation
from asap.chat.chat import Chat
from asap.chat.conversation import Conversation
from asap.experiments import Experiment, ExperimentStore
from asap.plans import Plan
from asap.sharding_memory import new_session_name
from tests.chat.conversations import PAPERS
from tests.language_models.fixtures import home, log, shared_home, store, studies

__all__ = ["analyses", "chat", "home", "log", "say", "shared_home", "store", "studies"]
Opened = Callable[[str], Conversation]
LLAMA = {"layers": 32, "d_model": 4096, "d_ff": 11008, "heads": 32, "kv_heads": 32, "head_dim": 128, "vocab": 32000}


def _opened(experiment: str, store: ExperimentStore) -> Conversation:
    """An analysis whose proposals are chosen: chats that start from it need not choose them again."""
    conversation = open_conversation(experiment, store)
    _ = conversation.opening, conversation.choice_of_the_analysis
    return conversation


@pytest.fixture(scope="session")
def opened() -> Opened:
    """Opens the analysis of an experiment, each record once for all tests."""
    known: dict[str, Conversation] = {}

    def find(experiment: str) -> Conversation:
        store = ExperimentStore()
        record = store.get(experiment).model_dump_json()
        if record not in known:
            known[record] = _opened(experiment, store)
        return known[record]

    return find


@pytest.fixture(scope="module")
def analyses(home, opened):
    return {paper: opened(paper) for paper in PAPERS}


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


@pytest.fixture(scope="module")
def start(home, opened):
    """A fresh chat over a dense decoder on v5e-64 without a profile, which has two proposals, over one that is laid out
    worse and has three (``three``), or over another experiment."""
    store = ExperimentStore()
    for name, plan in (("dense", "data=16 model=4 remat=full"), ("three", "data=8 seq=2 model=4 remat=full")):
        store.add(Experiment.model_validate({
            "id": name, "model": LLAMA,
            "workload": {
                "global_batch": 256, "sequence_length": 4096, "precision": "bf16", "optimizer": "adamw",
                "framework": "MaxText",
            },
            "hardware": {"name": "v5e-64", "chip": "v5e", "topology": [8, 8], "devices": 64},
            "plan": Plan.parse(plan).model_dump(mode="json"),
        }), replace=True)  # fmt: skip

    def chat(experiment: str = "dense") -> Chat:
        return Chat(replace(opened(experiment), session=new_session_name(), evidence=[], focus=None))

    return chat


def _gpus(start, name: str, framework: str, plan: str, batch: int) -> Chat:
    ExperimentStore().add(Experiment.model_validate({
        "id": name, "model": LLAMA,
        "workload": {
            "global_batch": batch, "sequence_length": 4096, "precision": "bf16", "optimizer": "adamw",
            "framework": framework,
        },
        "hardware": {"name": "h100-16", "chip": "h100", "devices": 16},
        "plan": Plan.parse(plan).model_dump(mode="json"),
    }), replace=True)  # fmt: skip
    return start(name)


@pytest.fixture
def torchtitan(start):
    return _gpus(start, "titan", "torchtitan", "data=8 model=2 microbatches=1 remat=full", 16)


@pytest.fixture
def megatron(start):
    return _gpus(start, "megatron-dp", "Megatron-LM", "replica=4 model=4 microbatches=16 remat=full", 128)


@pytest.fixture
def dense(start):
    """A fresh chat over the dense decoder."""
    return start("dense")


@pytest.fixture
def three(start):
    """A fresh chat over the decoder that is laid out worse."""
    return start("three")


@pytest.fixture
def too_large(start):
    """A batch that does not fit."""
    ExperimentStore().add(Experiment.model_validate({
        "id": "too-large", "model": LLAMA,
        "workload": {
            "global_batch": 2048, "sequence_length": 4096, "precision": "bf16", "optimizer": "adamw",
            "framework": "MaxText",
        },
        "hardware": {"name": "v5e-64", "chip": "v5e", "topology": [8, 8], "devices": 64},
        "plan": Plan.parse("data=64 remat=full").model_dump(mode="json"),
    }), replace=True)  # fmt: skip
    return start("too-large")
