"""Networks between nodes as users say them."""

import pytest

from asap.core.errors import ConfigError
from asap.experiments.create import Statement, create_experiment
from asap.hardware import load_chip, read_network
from asap.prediction.predict_study import expect
from asap.study.study import study_of


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("8x400Gb", 50e9),
        ("8 x 50 GB/s", 50e9),
        ("3200Gbit/s/node", 50e9),
        ("1.6Tbps a node", 25e9),
        ("200Gb/gpu", 25e9),
    ],
)
def test_a_rate_is_that_of_one_device(text, rate):
    assert read_network(text, load_chip("h100")) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("text", "chip", "said"),
    [
        ("400Gb", "h100", "of a node, or of one GPU"),
        ("fast", "h100", "is no rate"),
        ("0Gb/gpu", "h100", "is no rate"),
        ("8x400Gb", "gb200", "rate of one"),
        ("8x400Gb", "v5e", "rate of one"),
    ],
)
def test_a_rate_of_nothing_in_particular_is_asked_back(text, chip, said):
    with pytest.raises(ConfigError, match=said):
        read_network(text, load_chip(chip))


def test_a_stated_network_decides_what_crosses_nodes_and_is_not_doubted():
    overrides = ["model=llama3.1-8b"]
    said = {"plan": "replica=16 remat=full microbatches=1", "global_batch": 16, "sequence_length": 4096}
    steps, notes = [], []
    for network in (None, "1x100Gb"):
        run = create_experiment("run", Statement(hardware="h100-16", network=network, **said), overrides=overrides)
        run = run.model_copy(update={"workload": run.workload.model_copy(update={"framework": "Megatron-LM"})})
        (found,) = expect(study_of(run), [run.plan])
        steps.append(found.step_time.value)
        notes.append([note for note in found.notes if "Not stated: network" in note])
    assert steps[1] > 1.5 * steps[0]
    assert (len(notes[0]), notes[1]) == (1, [])
    with pytest.raises(ConfigError, match="needs the chip"):
        create_experiment("run", Statement(network="8x400Gb"))
