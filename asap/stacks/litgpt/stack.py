"""What of LitGPT no table says: what one device leaves out, and sizes that follow (``litgpt/config.py``)."""

from collections.abc import Mapping

Settings = Mapping[str, object]
_SECTIONS = ("model_config.", "model_config.init_args.")
_SHAPES = {"n_layer": 16, "n_embd": 4096, "n_head": 32}
"""With what each is where another one is said."""
_ALL = ("auto", "-1", "None")


def prepared(settings: Settings, devices: int | None = None) -> dict[str, object]:
    """The settings with the devices of a node where all are taken, without recomputation on one, which has no FSDP, and
    with the shapes that go with those that are said."""
    found = dict(settings)
    nodes = int(str(found.get("num_nodes", 1)))
    if str(found.get("devices")) in _ALL and devices and not devices % nodes:
        found["devices"] = devices // nodes
    if devices == 1:
        found["activation_checkpointing"] = False
    if any(_said(found, name) is not None for name in _SHAPES):
        found |= {f"model_config.{name}": size for name, size in _SHAPES.items() if _said(found, name) is None}
    return found


def model_fields(settings: Settings) -> dict[str, object]:
    """The width of GPT-NeoX's MLP, and the padded vocabulary."""
    kind, width = str(_said(settings, "mlp_class_name") or "GptNeoxMLP"), int(str(_said(settings, "n_embd")))
    multiple, vocab = (int(str(_said(settings, name) or size)) for name, size in _OF_VOCABULARY.items())
    return {
        "d_ff": _said(settings, "intermediate_size") or (4 * width if kind == "GptNeoxMLP" else None),
        "vocab": _said(settings, "padded_vocab_size") or -(-vocab // multiple) * multiple,
    }


_OF_VOCABULARY = {"padding_multiple": 512, "vocab_size": 50_254}


def _said(settings: Settings, name: str) -> object:
    return next((settings[f"{each}{name}"] for each in _SECTIONS if settings.get(f"{each}{name}") is not None), None)
