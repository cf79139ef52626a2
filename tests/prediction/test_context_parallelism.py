"""Ways to attend to a sequence that several devices share: what each one sends, and what it takes for granted."""

import numpy as np
import pytest

from asap.plans import Plan
from asap.prediction.from_architecture import predict
from asap.prediction.step_model.collectives import Channel
from asap.prediction.step_model.communication import communication, context_parallel_kind, sequence_seconds
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.memory import memory
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import load_calibration
from tests.cases import cases

FREE = Channel(8, 1.0, 0.0, 0.0, inside=8, fabric=1.0, port=1.0)
"""Eight devices that send a byte a second each."""


def inputs_of(plan, model, work, hardware, **changes):
    return step_inputs([Plan.parse(plan)], model, work.model_copy(update=changes), hardware)


def sent(model, work, hardware, plan="seq=8 microbatches=512 remat=none", **changes):
    found = sequence_seconds(inputs_of(plan, model, work, hardware, **changes), FREE)
    return float(np.squeeze(found))


@cases("framework, kind")
def test_a_stack_has_a_way_of_its_own(workload, framework, kind):
    assert context_parallel_kind(workload.model_copy(update={"framework": framework})) == kind
    said = workload.model_copy(update={"framework": framework, "context_parallel": "ring"})
    assert context_parallel_kind(said) == "ring"


@cases("kind, collective")
def test_a_prediction_names_the_collective_of_each_way(decoder, workload, h100, kind, collective):
    (found,) = predict(
        Plan.parse("replica=8 seq=8"), decoder, workload.model_copy(update={"context_parallel": kind}), h100
    )
    assert [part.name for part in found.parts if part.axis == "seq"] == [collective]


def test_ulysses_sends_its_own_tokens_and_a_gather_all_keys_and_values(decoder, workload, h100):
    tokens, share = 4096 / 8, 7 / 8
    gathered = 3 * 2 * 4096 * (2 * 8 * 128) * share
    swapped = 2 * 2 * tokens * (32 + 2 * 8 + 32) * 128 * share
    assert sent(decoder, workload, h100, context_parallel="all_gather") == pytest.approx(gathered)
    assert sent(decoder, workload, h100, context_parallel="ulysses") == pytest.approx(swapped)


def test_ulysses_copies_keys_and_values_where_they_have_fewer_heads_than_there_are_devices(decoder, workload, h100):
    few = decoder.model_copy(update={"kv_heads": 2})
    copied = 2 * 2 * (4096 / 8) * (32 + 4 * (2 * 2) + 32) * 128 * 7 / 8
    assert sent(few, workload, h100, context_parallel="ulysses") == pytest.approx(copied)


def test_recomputed_attention_swaps_heads_again(decoder, workload, h100):
    plan = "seq=8 microbatches=512 remat={}"
    once, again = (
        sent(decoder, workload, h100, plan.format(policy), context_parallel="ulysses") for policy in ("none", "full")
    )
    assert again == pytest.approx(1.5 * once)


def test_a_ring_hides_behind_attention(decoder, workload, h100):
    constants = load_calibration().full.resolve_one(Groups.of(h100, workload))
    long = {"sequence_length": 65536, "global_batch": 64}

    def exposed(kind):
        inputs = inputs_of("replica=8 seq=8 remat=none", decoder, workload, h100, context_parallel=kind, **long)
        return float(np.squeeze(predict_step(inputs, constants).sequence_exposed))

    assert exposed("ring") < exposed("all_gather")


def test_devices_that_share_a_sequence_reduce_their_gradients_or_shard_their_weights(decoder, workload, h100):
    constants = load_calibration().full.resolve_one(Groups.of(h100, workload))

    def of(framework, stage):
        inputs = inputs_of("seq=64 remat=full", decoder, workload, h100, framework=framework, zero_stage=stage)
        return communication(inputs, constants), memory(inputs)

    (reduced, replicated), (gathered, sharded) = of("Megatron-Core", 0), of("torchtitan", 3)
    assert reduced.replica_step > 0
    assert gathered.replica_step == 0
    assert gathered.gather_microbatch > reduced.gather_microbatch
    assert sharded.optimizer * 30 < replicated.optimizer
