"""Every table: what is written is read again, what is read needs no line, and no setting of the stack is forgotten."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import get_args

import pytest

from asap.core.errors import ConfigError, PlanError
from asap.experiments.maxtext import TABLE, known_keys
from asap.experiments.remarks import note_on_unmodelled
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.plan import Mesh
from asap.plans.remat import Remat
from asap.stacks.launchers import Stack
from asap.stacks.reading import from_settings, global_batch_of
from asap.stacks.registry import claimant, contracts, hook, irrelevant, spec, spec_of, specs
from asap.stacks.words import Word, word_keys
from asap.stacks.writing import lines_to_paste, to_settings

DEVICES, SEQUENCE = 64, 4096
TABLES = sorted(specs())
TOUCHES = re.compile(
    r"offload|overlap|fus(?:ed|ion)|bucket|double_buffer|nccl_ub|prefetch|recompute|cuda_graph|_chunk|reshard|async_|tp_comm|"
    r"checkpoint_(?:in_cpu|activations)"
)
ELSEWHERE = re.compile(
    r"^(?:recompute|inference_|rl_|log|retro|dino|mamba|decode|dist|online|moe_pad|s3_|gradient_noise|async_(?!tensor_model))"
    r"|_ckpt_|prefill|kernels_build|precompute|^data\.|^megatron_fsdp_cuda|unmet|num_buckets|delta_|delay_|retained|graph_(?:retain|warmup)|retain_|bootstrap|eval"
    r"|reduce_div|ds_fused|tp_comm_overlap_cfg|gdp_|zero_centered|_as_bucket|_for_audio|^grain_|pathways|^reshard_chunk|^block_diff"
    r"|^moba_|communication_overlapping|^tensors_to_offload"
)
"""Of other phases and models, and what only tunes a setting that is named besides."""
NAMES = Path(__file__).parents[1] / "data" / "stacks"
NAMED = sorted(path.stem for path in NAMES.glob("*.txt"))
SIZES = (1, 2, 4, 8)
SPLIT: dict[str, dict[str, object]] = {
    "accelerate": {"parallelism_config.tp_size": 1, "parallelism_config.cp_size": 1},
    "llama-recipes": {"enable_fsdp": True},
    "deepspeed": {"sequence_parallel_size": 1, "TrainingArguments.gradient_checkpointing": False},
}
"""Settings that go with a program which says them."""
INNER = ("seq", "model", "expert", "stage")


def names_of(name: str) -> list[str]:
    """Every setting that a stack has."""
    return (NAMES / f"{name}.txt").read_text().split()


def plans() -> Iterator[Plan]:
    """All plans of 64 devices, with and without recomputation, offloading and microbatches."""
    for inner in product(SIZES, SIZES, SIZES, SIZES):
        groups, rest = divmod(DEVICES, prod(inner))
        for replica in (size for size in (1, 2, 4, 8, 16, 32, 64) if groups and not rest and not groups % size):
            mesh = Mesh(replica=replica, data=groups // replica, **dict(zip(INNER, inner, strict=True)))
            for parts, remat in ((1, Remat.NONE), (8, Remat.FULL)):
                yield Plan(ici=mesh, microbatches=parts, remat=remat)
            yield Plan(ici=mesh, microbatches=2, remat=Remat.FULL, offload=("optimizer", "parameters"))


def minimal(name: str) -> dict[str, object]:
    """Settings without which a stack says nothing of its layout."""
    table = specs()[name]
    sizes: dict[str, object] = dict.fromkeys(table.axes.needs.values(), "said")
    sizes |= {table.axes.node.keys[0]: 8} if table.axes.node else {}
    sizes |= {table.batch.micro.keys[0]: 8 * (SEQUENCE if table.batch.unit == "tokens" else 1)}
    return sizes | SPLIT.get(name, {})


def prepared(name: str) -> Callable[[dict[str, object], int], Mapping[str, object]]:
    """What of its settings a stack counts on so many devices."""
    return hook(specs()[name], "prepared") or (lambda settings, _: settings)


@pytest.mark.parametrize("name", TABLES)
def test_what_is_written_is_read_again(name):
    table, current, expressed = specs()[name], prepared(name)(minimal(name), DEVICES), 0
    for plan in plans():
        batch = 2 * plan.batch_shards * (plan.microbatches or 1)
        try:
            changed = to_settings(table, plan, current, global_batch=batch, sequence=SEQUENCE)
        except PlanError:
            continue
        expressed += 1
        written = {**current, **changed}
        said = prepared(name)(written, DEVICES)
        read = from_settings(table, said, DEVICES)
        assert read == plan, written
        assert global_batch_of(table, said, read, SEQUENCE) == batch
        assert to_settings(table, read, written, global_batch=batch, sequence=SEQUENCE) == {}
        assert lines_to_paste(table, changed) or not changed
    assert expressed


@pytest.mark.parametrize("name", NAMED)
def test_each_setting_of_a_stack_is_read_or_said_to_be_irrelevant(name):
    table, without_effect = specs().get(name) or spec(name), irrelevant(name)
    read = table.words
    unknown = {*names_of(name)} - read - without_effect
    assert not [one for one in unknown if not any(key.startswith(f"{one}.") for key in read)]
    assert not read & without_effect


@pytest.mark.parametrize("name", NAMED)
def test_what_touches_time_or_memory_by_its_name_is_modelled_or_said_to_be_unmodelled(name):
    touching = {one for one in names_of(name) if TOUCHES.search(one) and not ELSEWHERE.search(one)}
    assert not touching - (specs().get(name) or spec(name)).words


@pytest.mark.parametrize("name", [*TABLES, "torchtitan", "trainer", "maxtext"])
def test_a_setting_that_is_not_modelled_is_said_with_what_it_is_likely_to_bring(name):
    listed = TABLE.unmodelled if name == "maxtext" else (specs().get(name) or spec(name)).unmodelled
    for likely, usual in listed.items():
        assert note_on_unmodelled(usual, listed) == ()
        for key in usual:
            (note,) = note_on_unmodelled({key: "other"}, listed)
            assert note == f"the prediction does not use {key}=other (likely {likely})"
    assert {key for usual in TABLE.unmodelled.values() for key in usual} <= known_keys()
    read = {} if name == "maxtext" else (specs().get(name) or spec(name)).workload
    assert not {key for words in read.values() for key in word_keys(*words)} & {
        key for keys in listed.values() for key in keys
    }


@pytest.mark.parametrize("name", TABLES)
def test_a_table_means_fields_and_policies_that_exist(name):
    table = specs()[name]
    words = [one for each in table.workload.values() for one in (each if isinstance(each, tuple) else (each,))]
    for switch in (w for w in words if w.open and w.values and not w.when and {*w.values} <= {"true", "1", "yes"}):
        with pytest.raises(ValueError, match="true or false"):
            switch.meaning({switch.keys[0]: "perhaps"})
    policies = {str(value) for word in table.recompute for value in word.values.values()}
    assert policies <= set(Remat)
    assert {*table.workload, *table.fields} <= Workload.model_fields.keys()
    assert {*table.model.shapes, *(field for kind in table.model.families.values() for field in kind)} <= {
        *Architecture.model_fields
    }
    layouts = table.axes.strategy.values.values() if table.axes.strategy else ()
    assert {*layouts} <= {"data", "replica", "hybrid"}
    assert table.source
    assert table.release


def test_a_word_without_meaning_is_an_error():
    word = Word.model_validate({"key": "precision", "values": {"amp_bf16": "bf16"}})
    assert word.meaning({"precision": "AMP_BF16"}) == "bf16"
    assert word.meaning({}) is None
    with pytest.raises(ValueError, match="one of amp_bf16"):
        word.meaning({"precision": "int3"})


def test_files_that_two_stacks_claim_are_asked():
    both = {"pipe_parallel_size": 1, "trainer.mp": "f32", "model.type": "llama"}
    with pytest.raises(ConfigError, match="has settings of GPT-NeoX and of Levanter") as asked:
        claimant(both, "both.yml")
    assert asked.value.hint == "say which it is: add stack=GPT-NeoX"
    assert claimant(both, "both.yml", "levanter").name == "Levanter"
    assert claimant({"some": 1}, "none.yml") is None
    assert spec_of("settings", {}) is None
    assert {table.contract for table in specs().values()} <= {*contracts()} == {*get_args(Stack)}
