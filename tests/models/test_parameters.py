"""Parameter counts: laws, and agreement with what is published."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import InsufficientEvidenceError
from asap.models import Architecture, count_parameters, find_architecture
from tests.cases import cases

PUBLISHED = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data" / "published_sizes.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
TOLERANCE = 0.02
TOLERANCE_EXPLAINED = 0.04
WIDTHS = st.integers(1, 8).map(lambda n: 128 * n)


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    heads = draw(st.sampled_from([1, 2, 4, 8]))
    fields = {
        "layers": draw(st.integers(1, 12)), "d_model": draw(WIDTHS), "d_ff": draw(WIDTHS), "heads": heads,
        "kv_heads": draw(st.sampled_from([h for h in (1, 2, 4, 8) if heads % h == 0])),
        "head_dim": draw(st.sampled_from([64, 128])), "vocab": draw(st.integers(1, 1000)),
        "gated_mlp": draw(st.booleans()), "tied_embeddings": draw(st.booleans()),
    }  # fmt: skip
    if draw(st.booleans()):
        fields["experts"] = draw(st.integers(1, 16))
        fields["experts_per_token"] = draw(st.integers(1, fields["experts"]))
        fields["expert_d_ff"] = draw(WIDTHS)
        fields["shared_experts"] = draw(st.integers(0, 2))
        fields["leading_dense_layers"] = draw(st.integers(0, 14))
        fields["moe_every"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        ranks = {"kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32}
        fields |= ranks | {"q_lora_rank": draw(st.sampled_from([None, 96]))}
    return Architecture(**fields)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row["model"])
def test_counts_agree_with_the_published_size(row) -> None:
    model = find_architecture(row["model"])
    counted = count_parameters(model)
    allowed = TOLERANCE_EXPLAINED if row.get("exception") else TOLERANCE
    assert counted.total == pytest.approx(row["billions"] * 1e9, rel=allowed)
    if "active_billions" in row:
        assert counted.active == pytest.approx(row["active_billions"] * 1e9, rel=TOLERANCE)


def test_exceptions_are_few_and_needed() -> None:
    excepted = [row for row in PUBLISHED if row.get("exception")]
    assert len(excepted) < len(PUBLISHED) / 10
    for row in excepted:
        counted = count_parameters(find_architecture(row["model"])).total
        assert counted != pytest.approx(row["billions"] * 1e9, rel=TOLERANCE), f"{row['model']} needs no exception"


@given(architectures())
def test_parts_add_up_and_a_token_uses_no_more_than_there_is(model: Architecture) -> None:
    counted = count_parameters(model)
    assert model.dense_layers + model.moe_layers == model.layers
    assert counted.total == counted.embedding + counted.head + counted.layers
    assert counted.active <= counted.total
    assert model.is_moe or counted.active == counted.total


@given(architectures())
def test_doubling_layers_doubles_what_lies_in_them(model: Architecture) -> None:
    plain = model.model_copy(update={"leading_dense_layers": 0, "layers": 6 * model.moe_every})
    twice = plain.model_copy(update={"layers": 2 * plain.layers})
    assert count_parameters(twice).layers == 2 * count_parameters(plain).layers
    assert count_parameters(twice).embedding == count_parameters(plain).embedding


@given(architectures())
def test_untying_adds_one_embedding_and_gating_half_an_mlp(model: Architecture) -> None:
    tied = count_parameters(model.model_copy(update={"tied_embeddings": True})).total
    untied = count_parameters(model.model_copy(update={"tied_embeddings": False})).total
    assert untied - tied == model.vocab * model.d_model
    gated = count_parameters(model.model_copy(update={"gated_mlp": True}))
    plain = count_parameters(model.model_copy(update={"gated_mlp": False}))
    assert 2 * gated.mlp == 3 * plain.mlp
    assert 2 * gated.expert == 3 * plain.expert


@given(architectures())
def test_fewer_key_value_heads_never_need_more(model: Architecture) -> None:
    shared = model.model_copy(update={"kv_heads": 1})
    assert count_parameters(shared).attention <= count_parameters(model).attention


@given(architectures(), st.integers(1, 4096))
def test_learned_positions_are_rows_of_the_embedding(model: Architecture, rows: int) -> None:
    positioned = model.model_copy(update={"learned_positions": rows})
    assert count_parameters(positioned).total - count_parameters(model).total == rows * model.d_model


@cases("layers, leading, every, moe")
def test_which_layers_have_experts(layers: int, leading: int, every: int, moe: int) -> None:
    shape = {"experts": 8, "experts_per_token": 2, "leading_dense_layers": leading, "moe_every": every}
    assert Architecture(layers=layers, **shape).moe_layers == moe


def test_an_unknown_shape_is_named_not_guessed() -> None:
    with pytest.raises(InsufficientEvidenceError, match="without d_ff, vocab"):
        count_parameters(Architecture(layers=2, d_model=8, heads=2, kv_heads=2, head_dim=4))
