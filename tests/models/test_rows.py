"""Rows of published models: what is read, what the family implies, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import AsapError, ConfigError, InsufficientEvidenceError
from asap.models import architecture_from_row
from asap.models.rows import ModelRow
from tests.cases import cases

GPT = {"model": "GPT h=1024 L=24", "n_layers": 24, "d_model": 1024, "n_heads": 16}
LLAMA = {"model": "some-llama", "n_layers": 32, "d_model": 4096, "d_ff": 14336, "n_heads": 32, "activation": "swiglu"}
MOE = {**LLAMA, "n_experts": 8, "top_k": 2, "moe_d_ff": 512}


def test_a_gpt_row_follows_the_rules_of_its_family() -> None:
    model = architecture_from_row(GPT)
    assert (model.kv_heads, model.head_dim, model.d_ff, model.vocab) == (16, 64, 4096, 51200)
    assert not model.gated_mlp
    assert model.tied_embeddings


def test_qwen_and_gemma_of_their_third_generation_norm_queries_and_keys() -> None:
    normed, plain = ("qwen3", "qwen3_moe", "gemma3"), ("qwen2", "gemma2", "llama2", None)
    found = {each: architecture_from_row({**LLAMA, "decoder_block": each}).qk_norm for each in (*normed, *plain)}
    assert found == dict.fromkeys(normed, True) | dict.fromkeys(plain, False)


@cases("name, block, parallel")
def test_early_maxtext_and_its_default_block_set_attention_beside_the_mlp(
    name: str, block: str | None, parallel: bool
) -> None:
    assert architecture_from_row({**LLAMA, "model": name, "decoder_block": block}).parallel_block is parallel


def test_outside_of_a_family_the_unknown_stays_unknown() -> None:
    model = architecture_from_row(LLAMA)
    assert model.vocab is None
    assert not model.tied_embeddings
    assert architecture_from_row({**LLAMA, "d_ff": None}).d_ff is None
    assert architecture_from_row({"model": "some-llama", "d_model": 4096}).head_dim is None


@cases("activation, gated")
def test_the_activation_says_whether_the_mlp_is_gated(activation: str, gated: bool) -> None:
    assert architecture_from_row({**LLAMA, "activation": activation}).gated_mlp is gated


@cases("block, window, expected")
def test_the_decoder_block_orders_local_and_full_attention(block: str, window: int | None, expected) -> None:
    model = architecture_from_row({**LLAMA, "decoder_block": block, "sliding_window": window})
    assert [model.sliding_window, model.global_layer_every] == expected


def test_gemma2_counts_pairs_of_layers() -> None:
    assert architecture_from_row({**LLAMA, "decoder_block": "gemma2", "n_layers": 23}).layers == 46


@cases("extra, moe_every, shared")
def test_experts_by_family(extra, moe_every: int, shared: int) -> None:
    model = architecture_from_row({**MOE, **extra})
    assert (model.moe_every, model.shared_experts) == (moe_every, shared)


def test_alpa_mixtures_follow_gshard() -> None:
    model = architecture_from_row({**GPT, "model": "MOE-380M (Alpa)", "n_experts": 8, "vocab": 32000})
    assert (model.experts_per_token, model.expert_d_ff, model.d_ff) == (2, 8192, 8192)


def test_latent_attention_keeps_its_ranks() -> None:
    ranks = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    model = architecture_from_row({**LLAMA, **ranks, "q_lora_rank": 0})
    assert model.is_mla
    assert model.q_lora_rank is None


@pytest.mark.parametrize(("billions", "vocab"), [(20, 51200), (199.8, 51200), (202.7, 250880), (None, 51200)])
def test_the_published_size_tells_which_tokenizer_bigscience_used(billions: float | None, vocab: int) -> None:
    layers = 8 if billions == 20 else 80
    row = {"model": "GPT (BigScience)", "n_layers": layers, "d_model": 14400, "model_params_b": billions}
    assert architecture_from_row(row).vocab == vocab


def test_what_a_run_says_goes_before_the_model() -> None:
    model = architecture_from_row({**GPT, "n_heads": 32, "vocab": 1000})
    assert (model.heads, model.head_dim, model.vocab) == (32, 32, 1000)


@pytest.mark.parametrize(("row", "error", "complaint"), [
    ({"model": "m", "n_layers": "many"}, ConfigError, "n_layers"),
    ({"model": "m", "n_layers": -1}, ConfigError, "layers"), ({"n_layers": 2}, ConfigError, "model"),
    ({**MOE, "top_k": 9}, ConfigError, "8 experts need 1 to 8"),
    ({**MOE, "top_k": None}, ConfigError, "8 experts need 1 to 8"),
    ({**LLAMA, "mlp_ratio": "wide", "d_ff": None}, ConfigError, "mlp_ratio"),
    ({**GPT, "model": "MOE-380M (Alpa)"}, InsufficientEvidenceError, "number of experts"),
    ({**LLAMA, "decoder_block": "deepseek4"}, InsufficientEvidenceError, "not modelled"),
])  # fmt: skip
def test_what_cannot_be_said_is_refused_in_one_line(row, error: type[AsapError], complaint: str) -> None:
    with pytest.raises(error, match=complaint) as caught:
        architecture_from_row(row)
    assert "\n" not in str(caught.value)


JUNK = (
    st.none() | st.sampled_from(["8/3", "1/0", "-1"]) | st.integers(-2, 2**40) | st.text(max_size=8)
    | st.floats(allow_nan=True) | st.lists(st.integers())
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(sorted(ModelRow.model_fields)), JUNK))
def test_any_row_is_read_or_refused(row) -> None:
    refusal = ""
    try:
        architecture_from_row(row)
    except (ConfigError, InsufficientEvidenceError) as error:
        refusal = str(error)
    assert "\n" not in refusal
