"""Flavors of the torchtitan beside a configuration, which win over those of the catalogue."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import TITAN, read

__all__ = ["read"]

LLAMA = """
from .model import ModelArgs

llama2_configs = {"1B": ModelArgs(dim=2048, n_layers=18, n_heads=16)}
llama3_configs = {
    "tiny": ModelArgs(dim=512, n_layers=4, n_heads=8, vocab_size=1000),
    "1B": ModelArgs(dim=2048, n_layers=16, n_heads=32, n_kv_heads=8, ffn_dim_multiplier=1.3, multiple_of=1024,
                    rope_scaling_args=RoPEScalingArgs(scaling_factor=32)),
    "8B": ModelArgs(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, ffn_dim_multiplier=1.3, multiple_of=1024),
}
"""
QWEN = """
qwen3_configs = {
    "mini_moe": Qwen3ModelArgs(
        vocab_size=2048, dim=256, n_layers=8, qk_norm=True, hidden_dim=3072, moe_enabled=True, moe_inter_dim=768,
        moe_args=MoEArgs(num_experts=64, num_shared_experts=0, top_k=8, score_func="softmax"),
    ),
    "half": Qwen3ModelArgs(n_layers=14, enable_weight_tying=True),
}
"""


@pytest.fixture
def titan(read, tmp_path):
    def call(model: str, flavor: str, registry: str, arguments: str = "", folder: str | None = None):
        package = tmp_path / "torchtitan" / "models" / (folder or model)
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(registry)
        (package / "model.py").write_text(arguments)
        text = TITAN.replace('name = "llama3"\nflavor = "8B"', f'name = "{model}"\nflavor = "{flavor}"')
        return read("train.toml", text.replace("tensor_parallel_degree = 4", ""), hardware="h100-64")

    return call


def test_a_flavor_that_is_not_in_the_catalogue(titan):
    run = titan("llama3", "tiny", LLAMA, folder="llama")
    assert run.model.model_dump(exclude_defaults=True) == {
        "name": "llama3 tiny", "layers": 4, "d_model": 512, "d_ff": 1536, "heads": 8, "kv_heads": 8, "head_dim": 64,
        "vocab": 1000,
    }  # fmt: skip
    assert "llama3 tiny is as llama/__init__.py has it" in run.notes


def test_one_that_is_another_than_in_the_catalogue(titan):
    run = titan("llama3", "1B", LLAMA, folder="llama")
    assert (run.model.layers, run.model.d_ff, run.model.tied_embeddings, run.model.vocab) == (16, 7168, False, 128256)
    assert "llama3 1B is as llama/__init__.py has it, unlike the catalogue" in run.notes


def test_one_that_is_the_same_is_not_spoken_of(titan):
    run = titan("llama3", "8B", LLAMA)
    assert run.model.d_ff == 14336
    assert not any("__init__" in note for note in run.notes)


def test_experts_of_qwen(titan):
    model = titan("qwen3", "mini_moe", QWEN).model
    assert (model.layers, model.heads, model.kv_heads, model.vocab, model.qk_norm) == (8, 16, 8, 2048, True)
    assert (model.experts, model.experts_per_token, model.expert_d_ff, model.shared_experts) == (64, 8, 768, 0)


def test_what_the_class_takes_where_nothing_is_said(titan):
    own = "class Qwen3ModelArgs(BaseModelArgs):\n    dim: int = 2048\n    n_heads: int = 32\n    eos_id: int = 3\n"
    model = titan("qwen3", "half", QWEN, own).model
    assert (model.layers, model.d_model, model.heads, model.experts, model.tied_embeddings) == (14, 2048, 32, 0, True)


def test_shapes_of_a_forks_own_are_not_read(titan):
    own = "class ModelArgs:\n    dim: int = 4096\n    ffn_dim: int = 8192\n"
    run = titan("llama3", "8B", LLAMA, own)
    assert run.model.layers == 32
    assert any("has ffn_dim of its own" in note for note in run.notes)


def test_a_flavor_that_says_them_is_unknown(titan):
    run = titan("llama3", "8B", LLAMA.replace("dim=4096", "dim=4096, ffn_dim=8192"))
    assert run.model.layers is None
    assert any("unlike the catalogue, and not read" in note for note in run.notes)


@pytest.mark.parametrize(
    "shape", ["n_heads=0", "dim='wide'", "n_layers=-3", "multiple_of=0", "ffn_dim_multiplier=1e400"]
)
def test_shapes_that_no_model_can_have_are_said(titan, shape):
    name = shape.partition("=")[0]
    wide = "" if name == "dim" else "dim=512, "
    flavor = f"llama3_configs = {{'tiny': ModelArgs({shape}, {wide}vocab_size=9)}}"
    with pytest.raises(ConfigError, match="shapes of llama3 tiny that no model can have"):
        titan("llama3", "tiny", flavor)


def test_a_file_that_is_no_python_is_passed_over(titan):
    assert titan("llama3", "8B", "llama3_configs = {'8B': ModelArgs(").model.layers == 32


@pytest.mark.parametrize("value", ["tiny()", "build(Config(layers=3))", "Llama3Model.Config(dim=512)"])
def test_what_only_a_run_can_tell_is_not_read(titan, value):
    run = titan("llama3", "tiny", f"llama3_configs = {{'tiny': {value}}}")
    assert run.model.layers is None
    assert titan("llama3", "8B", f"llama3_configs = {{'8B': {value}}}", folder="llama").model.layers == 32
