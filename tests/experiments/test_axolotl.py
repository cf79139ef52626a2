"""Axolotl's YAML: FSDP, replicas, DeepSpeed, and what is not modelled."""

import pytest

from asap.core.errors import ConfigError, InsufficientEvidenceError, PlanError
from asap.experiments.launcher_settings import apply_launcher_settings
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.stacks.launchers import inexpressible, launch_lines
from asap.study.study import study_of
from tests.cases import cases, kept

KEPT = kept(__file__)
TUNING = KEPT["TUNING"]
SMALL = KEPT["SMALL"]
NEW = {"fsdp_version": 2, "flash_attention": True}


@cases("added, said")
def test_what_is_not_modelled_or_contradicts_itself_is_refused(read, added, said):
    with pytest.raises(ConfigError, match=said):
        read("run.yaml", f"{TUNING}{added}", hardware="h100-8")


def test_eight_billion_weights_in_bf16_with_moments_of_a_byte_fit(read):
    run = read("run.yaml", f"{SMALL}optimizer: paged_adamw_8bit\ngradient_checkpointing: true", hardware="h100-8")
    assert (run.workload.first_moment_precision, run.workload.second_moment_precision) == ("int8", "int8")
    [prediction] = expect(study_of(run), [run.plan])
    parts = {part.name: part.size_bytes for part in prediction.memory.parts}
    assert "optimizer" not in parts
    assert prediction.memory.host_bytes == pytest.approx(parts["parameters"], rel=0.01)
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


def test_wide_moments_take_their_bytes_beside_narrow_weights(read):
    def state(optimizer: str) -> float:
        run = read("run.yaml", TUNING.replace("adamw_torch_fused", optimizer), hardware="h100-8")
        [prediction] = expect(study_of(run), [run.plan])
        return next(part.size_bytes for part in prediction.memory.parts if part.name == "optimizer")

    assert state("adamw_bnb_32bit") == pytest.approx(2 * state("adamw_torch_fused"))


def test_devices_that_share_a_sequence_hold_copies_unless_fsdp_shards(read):
    def parameters(*overrides: str) -> float:
        text = f"{SMALL}context_parallel_size: 8\nattn_implementation: flash_attention_2"
        study = study_of(read("run.yaml", text, *overrides, hardware="h100-8"))
        [prediction] = expect(study, [study.plan])
        return next(part.size_bytes for part in prediction.memory.parts if part.name == "parameters")

    assert parameters() == pytest.approx(8 * parameters("fsdp_version=2", "fsdp_config.offload_params=false"), rel=0.01)


def test_replicas_become_fsdp_with_an_optimizer_that_it_takes(read):
    run = read("run.yaml", f"{SMALL}optimizer: paged_adamw_8bit", hardware="h100-8")
    line = launch_lines(Plan.parse("data=8"), "axolotl", run.hyperparameters, global_batch=16)
    said = read("run.yaml", f"{SMALL}{line}", hardware="h100-8")
    assert (said.plan.degree("data"), said.hyperparameters["optimizer"]) == (8, "adamw_torch_8bit")


def test_settings_that_fill_a_configuration_of_deepspeed_are_read_again(read):
    run = read("run.yaml", f"{SMALL}deepspeed: deepspeed_configs/zero3_bf16.json", hardware="h100-8")
    again = apply_launcher_settings(run, {"micro_batch_size": "4"})
    assert again.workload.global_batch == 4 * run.workload.global_batch
    with pytest.raises(InsufficientEvidenceError, match="cannot be read again"):
        apply_launcher_settings(run, {"zero_optimization.stage": "2"})
