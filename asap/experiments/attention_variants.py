"""Attention of another kind that a run names, and that the prediction leaves out: it counts that of a plain decoder.

By the names of settings: ``infini_attention.segment_length: 1024``, ``use_sparse_attn: true``, ``use_deltanet``,
``attn_type: linear``.
Kernels of the same attention, heads that share keys and values, and switches around attention are none.
"""

import re
from collections.abc import Mapping

from asap.core.text import plain

_ATTENTION = ("attention", "attn")
_KIND = re.compile(
    r"(?:^|_)(?:attention|attn)(?:_(?:implementation|impl|type|kind|variant|mode|mechanism|method|class|cls|backend|kernel))?$"
)
_KERNELS = frozenset(
    (
        "flash", "fa", "xformers", "sdp", "sdpa", "eager", "fused", "unfused", "flex", "te", "memory", "efficient",
        "cudnn", "triton", "turbo", "ring", "ulysses", "varlen", "ragged", "paged", "splash", "kitchen", "sage",
        "aiter", "ck", "math", "dot", "product", "auto", "autoselected", "default", "torch", "native", "kernels",
    )
)  # fmt: skip
"""Ways to compute the same attention, as launchers and libraries call them."""
_READ = frozenset(
    (
        "self", "core", "causal", "full", "global", "local", "sliding", "chunk", "chunked", "group", "grouped", "multi",
        "query", "head", "latent", "mha", "gqa", "mqa", "mla", "parallel", "linear", "retro", "experimental", "softmax",
    )
)  # fmt: skip
"""Kinds that the readers know by a setting of their own, or refuse."""
_AROUND = frozenset(
    (
        "use", "no", "enable", "disable", "force", "export", "checkpoint", "recompute", "offload", "swap", "freeze",
        "train", "compile", "async", "overlap", "dp", "tp", "cp", "mup", "log", "save", "dump", "output", "return",
        "num", "is", "with", "in", "of", "the", "for", "apply", "patch", "version", "type", "post", "pre",
        "multipack", "pack", "packed", "packing", "pretrain", "document", "doc", "intra", "mask", "masked",
    )
)  # fmt: skip
"""Words of switches around attention."""
_MIXERS = re.compile(
    r"(?:use|enable|with|is)_(?:gated_?)?(?:delta_?net|delta_?rule|gdn|kda|gla|mamba2?|rwkv\d*|retnet|retention|hyena|"
    r"m?lstm|ssm|s4|hgrn2?|lightning|performer|linformer)(?:_layers?)?"
)
"""Switches of what stands in the place of attention."""
_TAKEN = frozenset(("experimental_attention_variant",))
"""Settings of which a reader says itself what it takes them for."""
_ON = ("true", "yes", "on")
_OFF = ("", "0", "false", "no", "none", "null", "off", "disabled")
_MOST = 4


def variants_of_attention(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Settings that by their name or value make another attention, as ``key`` or ``key=value``."""
    found: dict[str, None] = {}
    for key, value in settings.items():
        if str(value).casefold() in _OFF:
            continue
        sections = str(key).casefold().replace("-", "_").split(".")
        if named := next((one for one in sections if _names_variant(one) or _MIXERS.fullmatch(one)), None):
            found[named] = None
        elif (
            isinstance(value, str) and sections[-1] not in _TAKEN and _KIND.search(sections[-1]) and _is_variant(value)
        ):
            found[f"{sections[-1]}={plain(value, 40)}"] = None
    return tuple(plain(one, 80) for one in found)


def note_on_attention(settings: Mapping[str, object]) -> tuple[str, ...]:
    """A note that such attention is left out; none where there is none."""
    found = variants_of_attention(settings)
    if not found:
        return ()
    listed = ", ".join(found[:_MOST]) + (", …" if len(found) > _MOST else "")
    return (f"{listed}: the prediction leaves this attention out, and counts that of a plain decoder",)


def _names_variant(name: str) -> bool:
    words = name.split("_")
    if words[-1] not in _ATTENTION:
        return False
    return any(not _is_plain(word) for word in words[:-1])


def _is_variant(value: str) -> bool:
    words = [word for word in re.split(r"[\W_]+", value.casefold()) if word]
    return bool(words) and not any(_is_plain(word) for word in words)


def _is_plain(word: str) -> bool:
    bare = word.rstrip("0123456789")
    return not bare or bare in _KERNELS | _READ | _AROUND or bare in (*_ATTENTION, *_ON)
