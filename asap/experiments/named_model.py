"""The model that a configuration names, or what to give where it is not known."""

import re

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.shell import has_substitution
from asap.models import Architecture, find_architecture
from asap.models.architecture import REQUIRED
from asap.models.catalogue import find_base

_KINDS = {
    "a model with state-space or recurrent layers": (
        r"(?:falcon_?|codestral_?)?mamba2?|rwkv\d*|retnet|xlstm|recurrentgemma|griffin|jamba|zamba2?|bamba|hymba|"
        r"(?:striped_?)?hyena|falcon_h1r?|nemotron_h|granite_4_0_h|kimi_linear|zebra_llama|lfm2|delta_?net|gated_?delta_?net"
    ),
    "an encoder": r"\w*bert(?:a|_base|_large)?|electra|e5|bge|gte",
    "an encoder with a decoder": r"(?:flan_|m|um|by|long_|code)?t5[a-z]?|ul2|m?bart|pegasus|marian|nllb|m2m\d*",
    "a model of speech": r"whisper|wav2vec2?|hubert",
    "a model of images": r"vit|deit|clip|siglip2?|dinov?[23]?|stable_diffusion|sdxl",
}
_NAMED = {kind: re.compile(rf"(?:^|_)(?:{names})(?=_|$)") for kind, names in _KINDS.items()}


def other_kind(name: str) -> str | None:
    """What a model is that by its name is no decoder with attention; ``None`` where its name does not say so.

    Args:
        name: as a hub or a path has it; the last part counts.
    """
    last = re.sub(r"[\W_]+", "_", name.rstrip("/").rpartition("/")[2].casefold())
    return next((kind for kind, named in _NAMED.items() if named.search(last)), None)


SHAPES = " ".join(f"model.{field}=…" for field in REQUIRED)
"""An architecture as fields of a record, as they are added to a command."""

NO_MODEL = f"the model is not said: add model=NAME (such as llama3.1-8b), or {SHAPES}"
_CACHED = re.compile(r"(?:^|/)models--([\w.-]+?)--([\w.-]+)(?:/|$)")
_POINT = "___"
"""What ModelScope's cache has for a point in a name: ``Qwen2___5-7B``."""
_MORE_THAN_TEXT = re.compile(
    r"[-_.](vl|vlm|vision|omni)(?![a-z])|llava|internvl|paligemma|pixtral|idefics|smolvlm|minicpm-?v|mllama|kosmos|fuyu",
    re.IGNORECASE,
)


def name_at_end(named: str) -> str | None:
    """The last part of a path whose beginning only a run can tell: ``$HOME/models/Qwen3-8B``; ``None`` where that is
    open, too."""
    name = named.rstrip("/").rpartition("/")[2] if has_substitution(named) else named
    return None if has_substitution(name) or not name else name


def read_named_model(name: str) -> tuple[Architecture, tuple[str, ...]]:
    """The architecture of that name, or of that folder in the cache of Hugging Face's hub or ModelScope's, with notes;
    one that is not in the catalogue has a name alone.

    Raises:
        ConfigError: it is no decoder with attention, by its name.
    """
    cached = _CACHED.search(name)
    name = f"{cached[1]}/{cached[2]}" if cached else name.replace(_POINT, ".")
    shown = plain(name, 120)
    known = find_architecture(name)
    if known is None and (kind := other_kind(name)) is not None:
        reason = f"the model {shown} is by its name {kind}, which is not modelled"
        raise ConfigError(reason, hint="add model=NAME if it is a decoder with attention after all")
    if known is None and (base := find_base(name)) is not None:
        note = f"the model {shown} is taken to have the shapes of {base.name}: add model=NAME if it has others"
        return base.model_copy(update={"name": shown}), (note,)
    if known is None:
        ask = f"add model=NAME of one that is (such as llama3.1-8b), or {SHAPES}"
        more = (f"{shown} reads more than text; only its language model is read",)
        note = f"the model {shown} is not in the catalogue: {ask}"
        return Architecture(name=shown), (note, *(more if _MORE_THAN_TEXT.search(name) else ()))
    known = known.model_copy(update={"name": shown})
    if _MORE_THAN_TEXT.search(name):
        return known, (f"{shown} reads more than text; only its language model is read",)
    return known, ()
