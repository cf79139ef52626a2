"""Models that are no decoder with attention, by their names: ``state-spaces/mamba-2.8b``, ``google/flan-t5-xl``."""

import re

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
