"""YAML of Hydra that is laid over other files."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

BASE = """
swiglu: true
bf16: true
num_query_groups: 4
group_query_attention: true
sequence_parallel: true
micro_batch_size: 2
tensor_model_parallel_size: 4
"""
OWN = """
defaults: [llama, _self_]
num_layers: 16
hidden_size: 2048
num_attention_heads: 16
ffn_hidden_size: 8192
seq_length: 4096
vocab_size: 50304
global_batch_size: 64
tensor_model_parallel_size: 2
"""


def test_what_lies_below_is_read(read, tmp_path):
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "llama.yaml").write_text("defaults:\n  - base\n  - _self_\nposition_embedding_type: rope\n")
    run = read("small.yaml", OWN, hardware="h100-8")
    assert (run.model.kv_heads, run.model.gated_mlp, run.model.learned_positions) == (4, True, 0)
    assert (str(run.plan), run.workload.precision) == ("replica=4 model=2 microbatches=8 remat=none", "bf16")
    below = read("small.yaml", OWN.replace("[llama, _self_]", "[_self_, llama]"), hardware="h100-8")
    assert below.plan.degree("model") == 4


def test_a_file_by_its_path(read, tmp_path):
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "base.yml").write_text(BASE)
    run = read("small.yaml", OWN.replace("[llama, _self_]", "common/base.yml"), hardware="h100-8")
    assert (run.model.kv_heads, run.plan.degree("model")) == (4, 2)


def test_what_is_not_there_is_asked_for(read, tmp_path):
    with pytest.raises(ConfigError, match=r"takes its defaults from llama\.yaml, which is not there"):
        read("small.yaml", OWN)
    (tmp_path / "llama.yaml").write_text("defaults: [llama, _self_]\n")
    with pytest.raises(ConfigError, match="takes its defaults from llama"):
        read("small.yaml", OWN)
