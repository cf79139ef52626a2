import json

import pytest

from asap.core.errors import ConfigError
from asap.experiments import Experiment, read_configuration
from asap.models import Architecture
from asap.models.parameters import count_parameters

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
MOE = {"num_experts_per_tok": 2, "num_attention_heads": 8, "hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 100}


@pytest.fixture
def read(tmp_path):
    def call(config: dict, *overrides: str) -> Experiment:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        return read_configuration(path, overrides, Experiment(id="x"))

    return call


def model_of(experiment: Experiment) -> Architecture:
    assert experiment.model is not None
    return experiment.model


def test_a_dense_decoder(read):
    experiment = read(LLAMA | {"_name_or_path": "meta-llama/x"})
    model = model_of(experiment)
    assert model.missing() == ()
    assert (model.name, model.head_dim, model.kv_heads, model.d_ff) == ("meta-llama/x", 128, 8, 14336)
    assert model.gated_mlp
    assert not model.tied_embeddings
    assert experiment.provenance["model.kv_heads"] == "config.json: num_key_value_heads"
    assert experiment.provenance["model.head_dim"] == "default of model_type llama"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257, "n_inner": None},
            {"d_ff": 3072, "kv_heads": 12, "gated_mlp": False, "tied_embeddings": True, "learned_positions": 1024},
        ),
        (LLAMA | {"model_type": "gpt_neox"}, {"gated_mlp": False, "tied_embeddings": False}),
        (
            LLAMA | {"model_type": "mistral", "sliding_window": 4096},
            {"sliding_window": 4096, "global_layer_every": None},
        ),
        (LLAMA | {"model_type": "mistral", "sliding_window": None}, {"sliding_window": None}),
        (
            LLAMA | {"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 4096},
            {"sliding_window": None},
        ),
        (
            LLAMA | {"model_type": "gemma2", "sliding_window": 4096, "head_dim": 256},
            {"global_layer_every": 2, "head_dim": 256, "tied_embeddings": True},
        ),
        (
            LLAMA
            | {
                "model_type": "olmo3",
                "sliding_window": 4096,
                "layer_types": (["sliding_attention"] * 2 + ["full_attention"]) * 2,
            },
            {"global_layer_every": 3},
        ),
        (LLAMA | {"model_type": "phi3", "tie_word_embeddings": True}, {"tied_embeddings": True}),
        (
            MOE | {"model_type": "mixtral", "intermediate_size": 128, "num_local_experts": 8},
            {"experts": 8, "experts_per_token": 2, "expert_d_ff": 128, "shared_experts": 0},
        ),
        (
            MOE
            | {
                "model_type": "qwen2_moe",
                "intermediate_size": 512,
                "num_experts": 60,
                "moe_intermediate_size": 32,
                "shared_expert_intermediate_size": 128,
                "decoder_sparse_step": 2,
            },
            {"experts": 60, "expert_d_ff": 32, "shared_experts": 4, "moe_every": 2, "d_ff": 512},
        ),
        (
            MOE
            | {
                "model_type": "deepseek_v3",
                "intermediate_size": 512,
                "n_routed_experts": 16,
                "n_shared_experts": 1,
                "moe_intermediate_size": 32,
                "first_k_dense_replace": 1,
                "q_lora_rank": None,
                "kv_lora_rank": 16,
                "qk_nope_head_dim": 8,
                "qk_rope_head_dim": 4,
                "v_head_dim": 8,
            },
            {"experts": 16, "leading_dense_layers": 1, "kv_lora_rank": 16, "q_lora_rank": None, "head_dim": None},
        ),
    ],
)
def test_families_are_read_by_their_own_rules(read, config, expected):
    model = model_of(read(config))
    assert {field: getattr(model, field) for field in expected} == expected
    assert model.missing() == ()


def test_queries_and_keys_are_normed_where_the_family_does(read):
    assert model_of(read(LLAMA | {"model_type": "qwen3"})).qk_norm
    assert not model_of(read(LLAMA | {"model_type": "qwen2"})).qk_norm


def test_attention_is_beside_the_mlp_where_the_family_has_it_so(read):
    neox = LLAMA | {"model_type": "gpt_neox"}
    assert model_of(read(neox)).parallel_block
    assert not model_of(read(neox | {"use_parallel_residual": False})).parallel_block
    cohere = model_of(read(LLAMA | {"model_type": "cohere"}))
    assert cohere.parallel_block
    assert cohere.tied_embeddings
    assert not model_of(read(LLAMA)).parallel_block


def test_the_language_model_inside_a_multimodal_one_is_read(read):
    inner = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    experiment = read({"model_type": "gemma3", "text_config": inner | {"sliding_window": 1024}, "vision_config": {}})
    model = model_of(experiment)
    assert (model.heads, model.kv_heads, model.vocab, model.sliding_window) == (8, 4, 262208, 1024)
    assert model.global_layer_every == 6
    assert any("language model" in note for note in experiment.notes)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "bert"}, "model_type bert is not a decoder"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "encoder-decoder"),
        ({"model_type": "clip", "vision_config": {}}, "has a vision_config and no text_config"),
        ({"model_type": "lama"}, "nearest: .*llama"),
        ({"architectures": ["X"]}, r"model_type \(none\)"),
        (LLAMA | {"num_hidden_layers": "many"}, "num_hidden_layers must be a whole number"),
        (LLAMA | {"num_hidden_layers": -3}, "layers"),
        (MOE | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 9}, "8 experts need"),
    ],
)
def test_what_is_no_decoder_is_refused(read, config, said):
    with pytest.raises(ConfigError, match=said):
        read(config)


def test_fields_can_be_added_to_a_model(read):
    experiment = read(LLAMA, "plan=data=16 model=4", "workload.global_batch=64", "hardware=v5e-64")
    assert experiment.plan is not None
    assert str(experiment.plan) == "data=16 model=4"
    assert experiment.workload.global_batch == 64
    assert experiment.hardware.devices == 64


LLAMA4 = {
    "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
    "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "vocab_size": 202048,
}  # fmt: skip
FALCON = {"model_type": "falcon", "vocab_size": 65024}


@pytest.mark.parametrize(
    ("config", "published"),
    [
        ({"model_type": "llama4", "vision_config": {}, "text_config": LLAMA4}, 107.8e9),
        (LLAMA4 | {"num_local_experts": 128, "interleave_moe_layer_step": 2}, 400.7e9),
        (
            FALCON | {"hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32, "multi_query": True},
            6.92e9,
        ),
        (
            FALCON
            | {"hidden_size": 8192, "num_attention_heads": 128, "num_hidden_layers": 60, "num_kv_heads": 8}
            | {"new_decoder_architecture": True},
            41.3e9,
        ),
        (
            {"model_type": "RefinedWeb", "hidden_size": 8192, "n_head": 128, "n_head_kv": 8, "n_layer": 60}
            | {"new_decoder_architecture": True, "vocab_size": 65024},
            41.3e9,
        ),
    ],
)
def test_published_parameter_counts(read, config, published):
    assert count_parameters(model_of(read(config))).total == pytest.approx(published, rel=0.01)


def test_layers_of_llama_4_and_falcon(read):
    scout = model_of(read(LLAMA4))
    assert (scout.sliding_window, scout.global_layer_every, scout.shared_experts, scout.moe_layers) == (8192, 4, 1, 48)
    old = model_of(read(FALCON | {"hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 2}))
    assert (old.kv_heads, old.parallel_block, old.tied_embeddings, old.d_ff) == (1, True, True, 256)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"model_type": {"a": 1}}', "model_type must be a word"),
        ('{"model_type": ["llama"]}', "model_type must be a word"),
        ('{"model_type": "llama", "hidden_size": {"a": 1}}', "hidden_size must be a whole number"),
        ('{"model_type": "llama", "hidden_size": 1000000000000000000000}', "a whole number of more than 18 digits"),
        ('{"model_type": "llama", "hidden_size": 1e30}', "hidden_size must be a whole number up to"),
        ('{"model_type": "llama", "hidden_size": NaN}', "hidden_size must be a whole number"),
        ('{"model_type": "llama", "num_hidden_layers": Infinity}', "num_hidden_layers must be a whole number up to"),
        ('{"model_type": "llama", "hidden_size": 1, "hidden_size": 2}', "hidden_size is given twice"),
        ('{"model_type": "llama4", "text_config": [1]}', "text_config must be a mapping"),
        ('{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}", "cannot be read as JSON"),
    ],
)
def test_hostile_values_are_one_line(tmp_path, text, said):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        read_configuration(path, [], Experiment(id="x"))
    assert "\n" not in str(caught.value)
