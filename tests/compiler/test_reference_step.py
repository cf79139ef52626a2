import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from asap.compiler.reference.expressible import mapping_target
from asap.compiler.reference.segments import Layer, Segment, segments
from asap.compiler.reference.train_step import reference_step
from asap.compiler.toolchain.interpreters import virtual_devices
from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.mapping.check import check
from asap.mapping.language.parse import parse
from asap.mapping.sharding import kept_in_all
from asap.models import Architecture, Workload, find_architecture
from asap.plans import Plan
from tests.cases import kept

pytestmark = pytest.mark.compiles

DENSE = Architecture(layers=2, d_model=32, d_ff=64, heads=8, kv_heads=2, head_dim=8, vocab=64)
EXPERTS = Architecture(
    layers=2, d_model=32, d_ff=64, heads=4, kv_heads=4, head_dim=8, vocab=64, gated_mlp=False, tied_embeddings=True,
    experts=4, experts_per_token=2, expert_d_ff=32, shared_experts=1, leading_dense_layers=1, sliding_window=8,
)  # fmt: skip
HERE = Path(__file__).parent
FLAGS = f"{virtual_devices(8)} --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"


@pytest.fixture(scope="module")
def steps():
    """Reference steps on eight virtual devices, in one process for all tests of this file."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": FLAGS}
    environment["PYTHONPATH"] = str(HERE.parent.parent)
    command = [sys.executable, str(HERE / "reference_steps.py")]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:

        def ask(asked, model, *plans):
            print(json.dumps([asked, model.model_dump(mode="json"), plans]), file=child.stdin, flush=True)
            return json.loads(child.stdout.readline())

        yield ask
        child.stdin.close()


@pytest.fixture(scope="module")
def losses(steps):
    """Losses of real steps, by plan."""
    return partial(steps, "losses")


@pytest.fixture(scope="module")
def lowered(steps):
    """A hash of the lowered step, by plan."""
    return partial(steps, "lowered")


@pytest.mark.parametrize(("model", "plans"), [
    (DENSE, ["data=2 seq=2 model=2 remat=selective", "stage=2 data=2 model=2 microbatches=2 remat=full",
             "replica=2 microbatches=2 remat=minimal", "data=2 remat=save_out_proj",
             "model=2 remat=save_qkv_proj", "data=2 seq=2 model=2; loss_chunks=4",
             "data=2 seq=2 model=2; loss_chunks=16 head_gathered_once=true",
             "replica=2 data=2 microbatches=2; loss_chunks=8 head_gathered_once=true"]),
    (EXPERTS, ["expert=4 data=2 remat=full", "expert=2 model=2 seq=2 remat=minimal"]),
])  # fmt: skip
def test_every_plan_trains_the_same_model(losses, model, plans):
    found = losses(model, "data=1 remat=none", *plans)
    single = found.pop("data=1 remat=none")
    assert single[-1] < single[0]
    for plan, series in found.items():
        assert series == pytest.approx(single, rel=1e-5), plan


NARROW = "mesh data=2 model=4\ndtype up, down bf16 in layers 1\ndtype head bf16"


def test_a_state_in_bf16_or_some_tensors_of_it_train_as_well(losses):
    found = losses(DENSE, "data=1", "data=2 model=2 remat=full; weight_precision=bf16", NARROW)
    whole, *narrow = found.values()
    for series in narrow:
        assert series == pytest.approx(whole, rel=0.02)
        assert series != pytest.approx(whole, rel=1e-5)


def test_layers_that_are_not_scanned_train_as_well(losses):
    found = losses(DENSE, "data=1; scan_layers=false", "data=2 model=2 remat=minimal; scan_layers=false")
    single, split = found.values()
    assert split == pytest.approx(single, rel=1e-5)


@pytest.mark.parametrize("part", ["qk_norm", "parallel_block"])
def test_a_norm_of_queries_and_keys_or_parallel_blocks_make_another_model_that_every_plan_trains_the_same(losses, part):
    found = losses(DENSE.model_copy(update={part: True}), "data=1", "data=2 model=2 seq=2 remat=full")
    single, split = found.values()
    assert split == pytest.approx(single, rel=1e-5)
    assert single != pytest.approx(losses(DENSE, "data=1")["data=1"], rel=1e-3)


LINES = kept(__file__)["LINES"]


def test_a_mapping_program_trains_the_same_model(losses):
    apart, whole, *mapped = losses(DENSE, "data=1; scan_layers=false", "data=1", *LINES).values()
    for series, single in zip(mapped, (apart, apart, whole), strict=True):  # ranges of layers are loops of their own
        assert series == pytest.approx(single, rel=1e-5)


def test_lines_that_say_what_the_plan_does_anyway_lower_to_the_same_program(lowered):
    plan, *programs = "data=2 model=2 seq=2", "mesh data=2 seq=2 model=2", (
        "mesh data=2 seq=2 model=2\nshard query, gate by embed over data, seq\nshard * by heads over model\n"
        "constrain residual by embed over model\nconstrain logits by vocabulary over model"
    )  # fmt: skip
    same, *mapped = lowered(DENSE, plan, *programs).values()
    assert mapped == [same, same]
    other = "mesh data=2 seq=2 model=2\nshard query by embed over data"
    assert lowered(DENSE, other)[other] != same


STATES = [
    (DENSE, "mesh data=2 seq=2 model=2"),
    (DENSE, "mesh data=2 model=2\ndtype head fp32\nplace optimizer on pinned_host; weight_precision=bf16"),
    (DENSE, "mesh model=4\nshard query by heads over none in layers 1\nplace up, embedding on pinned_host"),
    (DENSE, "mesh stage=2 data=2\nmicrobatches 2\nplace parameters on pinned_host"),
    (EXPERTS, "mesh expert=4 data=2\nshard expert_* by embed over none\ndtype router bf16 in layers 1"),
]


@pytest.mark.parametrize(("model", "program"), STATES)
def test_what_is_kept_between_steps_is_known_to_the_byte(steps, model, program):
    text, _, weights = program.partition("; weight_precision=")
    target = mapping_target(model, Workload(weight_precision=weights or None))
    assert check(text, target).feedback == ()
    assert steps("kept", model, program)[program] == list(kept_in_all(parse(text)[0], target))


def test_experts_train_the_same_under_lines_of_their_own(losses):
    program = "mesh expert=4 data=2\nshard expert_* by embed over none\nshard router by embed over data in layers 1"
    single, mapped = losses(EXPERTS, "data=1 remat=none", program).values()
    assert mapped == pytest.approx(single, rel=1e-5)


def test_equal_layers_are_one_loop():
    assert segments(DENSE) == (Segment((Layer(False, None),), 2),)
    assert segments(DENSE, scanned=False) == (Segment((Layer(False, None),), 1),) * 2


def test_layers_that_alternate_are_loops_of_blocks():
    model = Architecture(layers=7, experts=4, experts_per_token=1, expert_d_ff=8, moe_every=2, leading_dense_layers=1)
    dense, routed = Layer(False, None), Layer(True, None)
    assert segments(model) == (Segment((dense,), 1), Segment((dense, routed), 3))


def test_local_and_global_layers_alternate_with_a_rest():
    model = Architecture(layers=8, sliding_window=16, global_layer_every=6)
    local, everywhere = Layer(False, 16), Layer(False, None)
    assert segments(model) == (Segment((*[local] * 5, everywhere), 1), Segment((local,), 1), Segment((local,), 1))


def test_what_the_reference_step_does_not_do_is_said():
    workload = Workload(global_batch=8, sequence_length=16)
    latent = Architecture(layers=2, kv_lora_rank=8)
    with pytest.raises(InsufficientEvidenceError, match="latent attention"):
        reference_step(latent, workload, Plan(), None)
    with pytest.raises(InsufficientEvidenceError, match="global_batch"):
        reference_step(DENSE, Workload(sequence_length=16), Plan(), None)
    with pytest.raises(PlanError, match="the 16 tokens of a sequence on a device do not divide into the 3 chunks"):
        reference_step(DENSE, workload.model_copy(update={"loss_chunks": 3}), Plan(), None)
    once = workload.model_copy(update={"loss_chunks": 3, "head_gathered_once": True})
    with pytest.raises(PlanError, match="the 64 tokens of a device do not divide into the 3 chunks"):
        reference_step(DENSE, once, Plan.parse("data=2"), None)
    with pytest.raises(PlanError, match="only scanned layers"):
        reference_step(DENSE, workload.model_copy(update={"scan_layers": False}), Plan.parse("stage=2"), None)
    with pytest.raises(PlanError, match="interleaved"):
        reference_step(DENSE, workload, Plan.parse("stage=2 pipeline_repeats=2"), None)
    with pytest.raises(PlanError, match="8 sequences into 3 microbatches on 1 batch shards"):
        reference_step(DENSE, workload, Plan.parse("stage=2 microbatches=3"), None)
    with pytest.raises(PlanError, match="experts that lie on several devices"):
        reference_step(find_architecture("mixtral-8x7b"), workload, Plan.parse("expert=2 stage=2"), None)
    with pytest.raises(PlanError, match="blocks of 2 layers into 4 stages"):
        reference_step(find_architecture("gemma2-2b"), workload, Plan.parse("stage=4"), None)
