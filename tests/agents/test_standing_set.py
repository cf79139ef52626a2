"""The standing set with the built-in model: every question finds its query, facts are heard, planted texts are not."""

import pytest

from asap.agents.settings import Settings
from asap.chat.restore import open_conversation
from asap.experiments import ExperimentStore
from standing_set.__main__ import EXPERIMENT, PARTS, run, turns

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened(home):
    return open_conversation(EXPERIMENT, ExperimentStore())


@pytest.mark.parametrize("part", PARTS)
def test_every_turn_of_the_built_in_model_is_right(opened, part):
    assert [found for found, _ in run(part, opened, Settings()) if not found.right] == []


def test_the_set_asks_states_and_plants():
    sizes = {part: len(turns(part)) for part in PARTS}
    assert sizes == {"questions": 30, "facts": 20, "planted": 20}
    assert all(turn.calls for turn in turns("questions"))
    stated = [turn.facts for turn in turns("facts")]
    assert sum(stated) == len(stated) / 2
