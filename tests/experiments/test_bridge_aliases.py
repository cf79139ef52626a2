"""Files of recipes that name those of other files."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

THEIRS = """
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer


def ours_8b_4gpu_config() -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").to_megatron_provider(load_weights=False)
    cfg.model.tensor_model_parallel_size = 4
    cfg.train.global_batch_size = 32
    return cfg


ours_8b_config = ours_8b_4gpu_config
"""
NAMES = """
from megatron.bridge.recipes.ours.a100.ours import (
    ours_8b_4gpu_config as ours_8b_pretrain_config,
)
from megatron.bridge.recipes.ours.a100.ours import ours_14b_8gpu_config as ours_14b_pretrain_config
"""


def test_another_name_is_followed_to_the_file_that_has_the_recipe(read, tmp_path):
    folder = tmp_path / "megatron" / "bridge" / "recipes" / "ours" / "a100"
    folder.mkdir(parents=True)
    (folder / "ours.py").write_text(THEIRS)
    run = read("ours.py", NAMES, "recipe=ours_8b_pretrain_config", hardware="a100-8")
    assert (run.model.layers, run.plan.degree("model"), run.workload.global_batch) == (36, 4, 32)


def test_without_that_file_it_is_named(read):
    with pytest.raises(ConfigError, match=r"has 2 recipes .*ours_8b_pretrain_config, ours_14b_pretrain_config"):
        read("ours.py", NAMES)
    with pytest.raises(ConfigError, match=r"ours_14b_8gpu_config of megatron/bridge/recipes/ours/a100/ours\.py"):
        read("ours.py", NAMES, "recipe=ours_14b_pretrain_config")


def test_an_assigned_name_is_that_recipe(read):
    assert read("ours.py", THEIRS, "recipe=ours_8b_config", hardware="a100-8").plan.degree("model") == 4


def test_names_in_a_circle_end(read):
    circle = NAMES + "a_config = b_config\nb_config = a_config\n"
    with pytest.raises(ConfigError, match="has no recipe"):
        read("ours.py", circle, "recipe=a_config")
