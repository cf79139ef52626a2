"""The model of a LitGPT configuration: by its name, by its folder, or by its shapes (``litgpt/config.py``)."""

from collections.abc import Mapping
from typing import Any

from asap.experiments.named_model import NO_MODEL, name_at_end, read_named_model
from asap.experiments.settings.stack_settings import StackSettings
from asap.models import Architecture

_NAMED = ("model_config.name", "model_name", "checkpoint_dir", "initial_checkpoint_dir")
_SHAPES = {"n_layer": 16, "n_embd": 4096, "n_head": 32}
"""With what each is where another one is said."""
_GATED = ("LLaMAMLP", "GemmaMLP", "LLaMAMoE")
_TIES = "train.tie_embeddings"


def litgpt_model(settings: StackSettings, shapes: Any) -> tuple[Architecture | None, tuple[str, ...]]:
    """The architecture, with notes; LitGPT keeps the output embedding apart unless it is told otherwise."""
    tied = settings.flag(_TIES)
    if isinstance(shapes, Mapping):
        shapes = shapes.get("init_args", shapes)
        if not _SHAPES.keys().isdisjoint(shapes):
            return _of_shapes(StackSettings(_SHAPES | dict(shapes), settings.where()), tied), ()
    named = next((str(settings[key]) for key in _NAMED if settings.get(key)), None)
    name = name_at_end(named.rstrip("/")) if named else None
    if name is None:
        return None, (NO_MODEL,)
    found, notes = read_named_model(name)
    return found.model_copy(update={"tied_embeddings": tied}), notes


def _of_shapes(said: StackSettings, tied: bool) -> Architecture:
    width, heads = said.count("n_embd"), said.count("n_head")
    multiple, vocab = said.count("padding_multiple", 512) or 512, said.count("vocab_size", 50_254) or 0
    mlp = said.text("mlp_class_name", "GptNeoxMLP")
    experts = said.whole("n_expert", 0) or 0
    inner = said.count("intermediate_size", 4 * width if width and mlp == "GptNeoxMLP" else None)
    return Architecture(
        name=said.text("name"),
        layers=said.count("n_layer"),
        d_model=width,
        heads=heads,
        kv_heads=said.count("n_query_groups", heads),
        head_dim=said.count("head_size", width // heads if width and heads else None),
        d_ff=inner,
        vocab=said.count("padded_vocab_size", -(-vocab // multiple) * multiple),
        gated_mlp=mlp in _GATED,
        tied_embeddings=tied,
        parallel_block=said.flag("parallel_residual", True),
        qk_norm=said.flag("norm_qk"),
        experts=experts,
        experts_per_token=said.whole("n_expert_per_token", 0) or 0,
        expert_d_ff=said.count("moe_intermediate_size", inner) if experts else None,
        shared_experts=said.whole("n_shared_expert", 0) or 0,
        leading_dense_layers=said.whole("first_k_dense_replace", 0) or 0,
        sliding_window=said.count("sliding_window_size"),
    )
