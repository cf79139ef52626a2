"""Axolotl's YAML: FSDP, replicas, DeepSpeed, and what is not modelled."""

import json

import pytest

from asap.core.errors import ConfigError, PlanError
from asap.experiments.files.yaml_text import parse_yaml
from asap.plans import Mesh, Plan
from asap.prediction.predict_study import expect
from asap.stacks.launchers import inexpressible, launch_lines
from asap.study.study import study_of
from tests.cases import cases, kept

KEPT = kept(__file__)
TUNING = KEPT["TUNING"]
SMALL = KEPT["SMALL"]
SHARDED = KEPT["SHARDED"]
STAGE_2 = kept(__file__)["STAGE_2"]
NEW = {"fsdp_version": 2, "flash_attention": True}


def test_fsdp_with_tensors_split_and_replicas_of_the_shards(read):
    run = read("sharded.yaml", TUNING + SHARDED, hardware="h100-16")
    assert str(run.plan) == "replica=2 data=4 model=2 microbatches=4 remat=full"
    assert (run.model.layers, run.workload.global_batch, run.workload.sequence_length) == (32, 64, 4096)
    assert (run.workload.precision, run.workload.zero_stage, run.workload.optimizer) == ("bf16", 3, "adamw")
    assert (run.workload.framework, run.workload.attention, run.notes) == ("Axolotl FSDP", "flash", ())
    line = launch_lines(
        Plan.parse("data=16 microbatches=2 remat=full"), "axolotl", run.hyperparameters, global_batch=64
    )
    assert parse_yaml(line, "line")[0] == {
        "dp_shard_size": 16, "tensor_parallel_size": 1, "gradient_accumulation_steps": 2,
    }  # fmt: skip


def test_gradients_that_are_scattered_in_every_microbatch(read):
    syncs = "accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}\n"
    assert read("a.yaml", TUNING + SHARDED, hardware="h100-16").workload.sync_each_batch is None
    assert read("b.yaml", TUNING + SHARDED + syncs, hardware="h100-16").workload.sync_each_batch is True


def test_replicas_without_fsdp_and_the_first_version_of_its_settings(read):
    alone = read("alone.yaml", TUNING, "gradient_checkpointing=false", hardware="h100-8")
    assert (str(alone.plan), alone.workload.zero_stage) == ("replica=8 microbatches=4 remat=none", 0)
    first = "fsdp: [full_shard]\nfsdp_config: {fsdp_offload_params: true, fsdp_activation_checkpointing: true}"
    run = read("first.yaml", f"{TUNING}{first}", "gradient_checkpointing=false", hardware="h100-8")
    assert str(run.plan) == "data=8 microbatches=4 remat=full offload=optimizer+parameters"
    line = launch_lines(Plan.parse("data=8 microbatches=4"), "axolotl", run.hyperparameters, global_batch=64)
    assert line == "fsdp_config: {fsdp_offload_params: false}  # its other keys stay"


def test_a_deepspeed_configuration_that_it_fills(read, tmp_path):
    (tmp_path / "zero2.json").write_text(json.dumps(STAGE_2))
    run = read("run.yaml", f"{TUNING}deepspeed: deepspeed_configs/zero2.json", hardware="h100-8")
    assert (str(run.plan), run.workload.global_batch) == ("replica=8 microbatches=4 remat=full", 64)
    assert (run.workload.zero_stage, run.workload.framework, run.workload.precision) == (2, "DeepSpeed", "bf16")
    other = Plan.parse("replica=8 microbatches=8 remat=none")
    line = launch_lines(other, "deepspeed", run.hyperparameters, global_batch=64)
    changed = {"micro_batch_size": 1, "gradient_accumulation_steps": 8, "gradient_checkpointing": False}
    assert parse_yaml(line, "line")[0] == changed
    assert launch_lines(run.plan, "deepspeed", run.hyperparameters, global_batch=64) == ""


@cases("added, said")
def test_what_is_not_modelled_or_contradicts_itself_is_refused(read, added, said):
    with pytest.raises(ConfigError, match=said):
        read("run.yaml", f"{TUNING}{added}", hardware="h100-8")


def test_plugins_of_kernels_and_losses_change_no_method(read):
    plugins = "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\nqat: {group_size: 32}\n"
    run = read("run.yaml", f"{TUNING}{plugins}", hardware="h100-8")
    assert run.workload.global_batch == 64
    assert any(note.startswith("qat: ") for note in run.notes)


def test_what_is_taken_otherwise_is_said(read):
    text = TUNING.replace("sample_packing: true", "sample_packing: false").replace("adamw_torch_fused", "lion_8bit")
    run = read("run.yaml", f"{text}fsdp_config: {{sharding_strategy: SHARD_GRAD_OP}}", hardware="h100-8")
    assert all(any(word in note for note in run.notes) for word in ("are cut at", "few bits"))
    assert (run.workload.optimizer, run.workload.secondary_shards) == ("lion", 1)
    hybrid = read("run.yaml", f"{text}fsdp_config: {{fsdp_sharding_strategy: HYBRID_SHARD}}", hardware="h100-16")
    assert any("add dp_shard_size=N" in note for note in hybrid.notes)


@cases("sharding, kept")
def test_weights_stay_in_bf16_unless_the_first_version_of_fsdp_widens_them(read, sharding, kept):
    assert read("run.yaml", f"{SMALL}{sharding}", hardware="h100-8").workload.weight_precision == kept


def test_eight_billion_weights_in_bf16_with_moments_of_a_byte_fit(read):
    run = read("run.yaml", f"{SMALL}optimizer: paged_adamw_8bit\ngradient_checkpointing: true", hardware="h100-8")
    assert (run.workload.first_moment_precision, run.workload.second_moment_precision) == ("int8", "int8")
    [prediction] = expect(study_of(run), [run.plan])
    parts = {part.name: part.size_bytes for part in prediction.memory.parts}
    assert parts["optimizer"] == pytest.approx(parts["parameters"], rel=0.01)
    assert prediction.memory.fits


SECOND = {"fsdp_config.offload_params": False} | NEW


def test_what_axolotl_cannot_run_is_refused():
    for text in ("data=2 stage=2", "data=2 expert=2", "replica=4", "data=4 offload=optimizer", "data=4 remat=minimal"):
        with pytest.raises(PlanError, match="Axolotl"):
            launch_lines(Plan.parse(text), "axolotl", {"fsdp_config.a": 1}, global_batch=8)


@cases("settings, plan, said")
def test_what_axolotl_refuses_beside_what_is_set(settings, plan, said):
    reason = inexpressible(Plan.parse(plan), "axolotl", settings and SECOND | settings, 16)
    assert reason is None if said is None else said in (reason or "")


def test_sizes_beside_others_are_all_said():
    assert "dp_shard_size: 4" in launch_lines(Plan.parse("data=4 model=2"), "axolotl", SECOND)
    assert "dp_shard_size" not in launch_lines(Plan.parse("data=8"), "axolotl", SECOND)


def test_what_is_recomputed_no_more_is_not_offloaded(read, tmp_path):
    (tmp_path / "zero2.json").write_text(json.dumps(STAGE_2))
    text = f"{TUNING}deepspeed: zero2.json\nactivation_offloading: true"
    run = read("run.yaml", text, hardware="h100-8")
    line = launch_lines(Plan.parse("replica=8 microbatches=4 remat=none"), "deepspeed", run.hyperparameters)
    assert parse_yaml(line, "line")[0] == {"gradient_checkpointing": False, "activation_offloading": False}


@cases("more, plan, batch")
def test_a_shared_sequence_under_its_earlier_name(read, tmp_path, more, plan, batch):
    (tmp_path / "zero.json").write_text(json.dumps(STAGE_2))
    run = read("long.yaml", TUNING + "sequence_parallel_degree: 4\n" + more, hardware="h100-16")
    assert (str(run.plan), run.workload.global_batch, run.workload.context_parallel) == (plan, batch, "ring")


def test_a_shared_sequence_is_written_by_the_name_on_record(read):
    early = TUNING + "sequence_parallel_degree: 4\nfsdp_version: 2\nfsdp_config: {offload_params: false}\n"
    for text, key in (
        (early, "sequence_parallel_degree"),
        (early + "context_parallel_size: 4\n", "context_parallel_size"),
    ):
        run = read("long.yaml", text, hardware="h100-16")
        changed = run.plan.model_copy(update={"ici": Mesh(data=8, seq=2)})
        assert f"{key}: 2" in launch_lines(changed, "axolotl", run.hyperparameters, global_batch=32)


def test_moments_that_are_paged_are_left_open_and_said(read):
    run = read("paged.yaml", TUNING.replace("adamw_torch_fused", "paged_adamw_32bit"), hardware="h100-8")
    assert run.workload.first_moment_precision is None
    assert [note.partition(":")[0] for note in run.notes] == ["optimizer paged_adamw_32bit"]
    plain = read("plain.yaml", TUNING, hardware="h100-8")
    assert (plain.notes, plain.workload.first_moment_precision) == ((), None)


def test_wide_moments_take_their_bytes_beside_narrow_weights(read):
    def state(optimizer: str) -> float:
        run = read("run.yaml", TUNING.replace("adamw_torch_fused", optimizer), hardware="h100-8")
        [prediction] = expect(study_of(run), [run.plan])
        return next(part.size_bytes for part in prediction.memory.parts if part.name == "optimizer")

    assert state("adamw_bnb_32bit") == pytest.approx(2 * state("adamw_torch_fused"))
