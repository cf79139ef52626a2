"""What of GPT-NeoX no table says: widths that it scales, and the tokenizer's words (``megatron/model/transformer.py``,
``megatron/tokenizer/tokenizer.py``)."""

from collections.abc import Mapping

_GATED = ("geglu", "reglu", "swiglu", "bilinear", "glu")
_SCALED, _MULTIPLE = ("llama", "gated"), 256
"""Of ``mlp_type`` before ``activation`` had gated ones (releases of 2023, and Stability AI's)."""
_OWN, _WORDS_OF_OWN = "20B_tokenizer.json", 50_277
_WORDS = {"GPT2BPETokenizer": 50_257, "HFGPT2Tokenizer": 50_257, "CharLevelTokenizer": 512}


def prepared(settings: Mapping[str, object], _: int | None = None) -> dict[str, object]:
    """The settings with the kind of attention as a word; raises ValueError where it is none."""
    kinds = {kind for kind in _words(settings.get("attention_config")) if not kind.isdecimal()}
    if other := kinds - {"global", "flash"}:
        raise ValueError(f"attention_config has {', '.join(sorted(other))}, which is not modelled")
    return {**settings, **({"attention_config": kinds.pop()} if len(kinds) == 1 else {})}


def model_fields(settings: Mapping[str, object]) -> dict[str, object]:
    """Widths of the MLP, learned positions, and a vocabulary that is padded."""
    scaled = settings.get("mlp_type") in _SCALED
    gated = settings.get("activation", "gelu") in _GATED or scaled
    width, model = _whole(settings.get("intermediate_size")), _whole(settings.get("hidden_size"))
    inner = width or int(float(str(settings.get("expansion_factor") or 4)) * model)
    multiple = _whole(settings.get("mlp_multiple_of")) or (_MULTIPLE if scaled else 1)
    inner = int(inner * 2 / 3) // (1 if scaled else 2) if gated else inner
    learned = settings.get("pos_emb", "learned") == "learned"
    words = _WORDS.get(str(settings.get("tokenizer_type", "GPT2BPETokenizer")))
    words = _WORDS_OF_OWN if str(settings.get("vocab_file")).endswith(_OWN) else words
    padding = (_whole(settings.get("make_vocab_size_divisible_by")) or 128) * (
        _whole(settings.get("model_parallel_size")) or 1
    )
    return {
        "d_ff": -(-inner // multiple) * multiple or None,
        "gated_mlp": gated,
        "learned_positions": _whole(settings.get("max_position_embeddings")) if learned else 0,
        "vocab": None if settings.get("padded_vocab_size") or not words else -(-words // padding) * padding,
    }


def _whole(value: object) -> int:
    return int(str(value)) if str(value).isdecimal() else 0


def _words(value: object) -> list[str]:
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    return [] if value is None else [str(value)]
