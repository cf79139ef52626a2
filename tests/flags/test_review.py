import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.flags import Situation, review_flags
from asap.flags.environment import flags_in, is_performance_variable, parse_flags
from asap.flags.table import flag_tables
from asap.hardware import load_chip
from asap.models import Architecture
from asap.plans import Plan

DENSE = Architecture(layers=32, d_model=4096, heads=32, kv_heads=8, head_dim=128, d_ff=14336, vocab=128256)
MIXTURE = DENSE.model_copy(update={"experts": 8, "experts_per_token": 2, "expert_d_ff": 14336})
OVERLAP = (
    "--xla_tpu_enable_async_collective_fusion=true --xla_tpu_enable_async_collective_fusion_fuse_all_gather=true "
    "--xla_tpu_enable_async_collective_fusion_multiple_steps=true --xla_tpu_overlap_compute_collective_tc=true "
    "--xla_enable_async_all_gather=true"
)


def situation(plan, chip="v6e", stack="maxtext", model=DENSE, **more):
    return Situation(Plan.parse(plan), load_chip(chip), stack, model, **more)


def missing(environment, where):
    return {advice.title for advice in review_flags(environment, where).missing}


def unwise(environment, where):
    return {(advice.kind, *advice.flags) for advice in review_flags(environment, where).unwise}


def test_a_recipe_for_v6e_lacks_nothing():
    flags = f"--xla_tpu_scoped_vmem_limit_kib=98304 {OVERLAP}"
    review = review_flags({"LIBTPU_INIT_ARGS": flags}, situation("data=256"))
    assert review.on_record
    assert (review.missing, review.unwise, review.exports) == ((), (), ())
    assert all(flag.purpose for flag in review.set)
    assert len(review.set) == 6


def test_a_recipe_for_tpu7x_lacks_nothing_and_its_offloaded_collectives_are_no_contradiction():
    flags = (
        "--xla_tpu_scoped_vmem_limit_kib=61440 --xla_tpu_enable_sparse_core_collective_offload_all_gather=true "
        "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true --xla_tpu_host_transfer_overlap_limit=1"
    )
    where = situation("data=128 offload=activations", "tpu7x")
    review = review_flags({"LIBTPU_INIT_ARGS": flags}, where)
    assert (review.missing, review.unwise) == ((), ())


def test_what_is_kept_in_host_memory_asks_for_overlap_and_the_line_to_paste_holds_it():
    review = review_flags(
        {"LIBTPU_INIT_ARGS": f"--xla_tpu_scoped_vmem_limit_kib=98304 {OVERLAP}"},
        situation("data=256 remat=offload offload=activations"),
    )
    (advice,) = review.missing
    assert advice.source.startswith("https://")
    (line,) = review.exports
    assert line.startswith('export LIBTPU_INIT_ARGS="$LIBTPU_INIT_ARGS --xla_tpu_')
    assert "--xla_tpu_host_transfer_overlap_limit=24" in line
    assert review_flags(
        {"LIBTPU_INIT_ARGS": line.partition("ARGS ")[2]}, situation("data=256 offload=optimizer")
    ).on_record


@pytest.mark.parametrize(("plan", "chip", "model", "title"), [
    ("data=256", "v6e", DENSE, "more VMEM for an operation"),
    ("data=64 offload=optimizer", "v5p", MIXTURE, "overlap of host copies"),
    ("data=64 remat=host.context", "v5p", DENSE, "overlap of host copies"),
    ("data=64 dcn.data=2", "v5p", DENSE, "overlap of gradient all-reduces between slices"),
])  # fmt: skip
def test_traffic_asks_for_its_flags_and_other_traffic_does_not(plan, chip, model, title):
    assert title in missing({}, situation(plan, chip, model=model))
    assert missing({}, situation("data=16", "v4")) == set()


def test_mixture_models_get_their_own_limit():
    (advice,) = review_flags({}, situation("data=256", model=MIXTURE)).missing
    assert advice.flags == {"xla_tpu_scoped_vmem_limit_kib": "81920"}


def test_nothing_is_proposed_for_what_a_profile_shows_to_cost_nothing():
    where = situation("data=64 model=4 offload=activations", "v5e", hidden=frozenset({"offload"}))
    assert missing({"LIBTPU_INIT_ARGS": OVERLAP}, where) == set()


def test_fsdp_on_gpus_combines_the_collectives_of_a_layer():
    review = review_flags({"XLA_FLAGS": "--xla_gpu_enable_latency_hiding_scheduler=true"}, situation("data=64", "h100"))
    advice = {found.title: found for found in review.missing}["one all-gather and one reduce-scatter a layer"]
    layer = 2 * (4 * 4096 * 4096 * 5 // 8 + 3 * 4096 * 14336)
    assert layer <= int(advice.flags["xla_gpu_all_gather_combine_threshold_bytes"]) < 4 * layer
    assert "collectives beside compute" not in {found.title for found in review.missing}
    unknown = situation("data=64", "h100", model=None)
    assert "one all-gather and one reduce-scatter a layer" not in missing({}, unknown)


def test_one_queue_is_needed_or_harmful_depending_on_stack_chip_and_plan():
    name = "CUDA_DEVICE_MAX_CONNECTIONS"
    assert "one queue to each GPU" in missing({}, situation("replica=8 model=8", "h100", "megatron"))
    assert missing({name: "1"}, situation("replica=8 model=8", "h100", "megatron")) == set()
    assert missing({}, situation("replica=8 model=8", "b200", "megatron")) == set()
    assert missing({}, situation("replica=8", "h100", "megatron")) == set()
    assert unwise({name: "1"}, situation("data=64", "h100", "megatron")) == {("harmful", name)}
    assert unwise({name: "1"}, situation("data=64", "b200")) == {("harmful", name)}
    assert unwise({name: "1"}, situation("data=64", "h100")) == set()
    exports = review_flags({}, situation("replica=8 model=8", "h100", "megatron")).exports
    assert exports == (f"export {name}=1 # one queue to each GPU",)


def test_what_is_obsolete_or_harmful_is_named():
    flags = "--xla_gpu_enable_async_all_gather=true --xla_gpu_enable_latency_hiding_scheduler=false"
    given = {"XLA_FLAGS": flags, "NCCL_P2P_DISABLE": "1", "CUDA_LAUNCH_BLOCKING": "0"}
    assert unwise(given, situation("data=8", "h100")) == {
        ("obsolete", "xla_gpu_enable_async_all_gather"),
        ("harmful", "xla_gpu_enable_latency_hiding_scheduler"),
        ("harmful", "NCCL_P2P_DISABLE"),
    }
    checker = "xla_tpu_enable_sdc_checker"
    assert ("harmful", checker) in unwise({"LIBTPU_INIT_ARGS": f"--{checker}=True"}, situation("data=8"))
    assert unwise({"NCCL_P2P_DISABLE": "1"}, situation("data=8", "rtx4090")) == set()
    unknown = situation("data=64", "h100", None)
    assert missing({}, unknown) == set() != unwise(given, unknown)


def test_flags_in_the_wrong_variable_and_flags_given_twice():
    name = "xla_tpu_scoped_vmem_limit_kib"
    assert unwise({"XLA_FLAGS": f"--{name}=98304"}, situation("data=8")) == {("harmful", name)}
    twice = {"LIBTPU_INIT_ARGS": "--xla_tpu_rwb_fusion=true --xla_tpu_rwb_fusion=false"}
    review = review_flags(twice, situation("data=8", "v5p"))
    assert [(advice.kind, advice.flags) for advice in review.unwise] == [
        ("contradictory", {"xla_tpu_rwb_fusion": "false"})
    ]
    assert [flag.value for flag in review.set] == ["false"]
    same = {"LIBTPU_INIT_ARGS": "--xla_tpu_rwb_fusion=true --xla_tpu_rwb_fusion=1"}
    assert review_flags(same, situation("data=8", "v5p")).unwise == ()


def test_an_unknown_flag_is_not_judged_and_an_unknown_chip_gets_no_proposal():
    review = review_flags({"LIBTPU_INIT_ARGS": "--xla_new_flag=1"}, Situation(Plan.parse("data=8"), None, None))
    assert [(flag.name, flag.purpose) for flag in review.set] == [("xla_new_flag", None)]
    assert review.missing == ()


def test_performance_variables_and_no_others_belong_on_record():
    assert is_performance_variable("LIBTPU_INIT_ARGS")
    assert is_performance_variable("NCCL_IB_HCA")
    assert is_performance_variable("JAX_OPTIMIZATION_LEVEL")
    assert not is_performance_variable("HF_TOKEN")
    assert not is_performance_variable("PATH")


@pytest.mark.parametrize("table", flag_tables(), ids=lambda table: table.variable or "environment")
def test_every_judgement_is_on_a_flag_that_has_a_purpose_or_is_obsolete(table):
    for entry in table.missing:
        assert entry.set.keys() <= table.purposes.keys()
    for entry in table.unwise:
        assert entry.set or entry.any_of
        assert entry.kind == "obsolete" or entry.set.keys() <= table.purposes.keys()
    assert all(url.startswith("https://") for url in table.sources.values())


@pytest.mark.parametrize("table", flag_tables(), ids=lambda table: table.variable or "environment")
def test_what_is_proposed_is_not_called_unwise(table):
    everything = {name: value for entry in table.missing for name, value in entry.set.items()}
    flags = {name: value.replace("{layer_bytes}", "1") for name, value in everything.items()}
    environment = {table.variable: " ".join(f"--{n}={v}" for n, v in flags.items())} if table.variable else flags
    for chip, stack in (("v5e", "maxtext"), ("v6e", "maxtext"), ("h100", "maxtext")):
        assert review_flags(environment, situation("model=8", chip, stack)).unwise == ()


@given(
    st.lists(
        st.tuples(st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True), st.text("ab1/=,.", max_size=5)), max_size=5
    )
)
def test_flags_are_read_as_a_shell_splits_them(pairs):
    text = " ".join(shlex.quote(f"--{name}={value}") for name, value in pairs)
    assert parse_flags(text) == tuple(pairs)


@given(st.text(max_size=60))
def test_any_text_is_read(text):
    review = review_flags({"LIBTPU_INIT_ARGS": text, "XLA_FLAGS": text}, situation("data=8"))
    assert len(flags_in({"XLA_FLAGS": text})) <= len(text.split()) + 1
    assert all(flag.name for flag in review.set)
