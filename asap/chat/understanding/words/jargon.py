"""Short forms that engineers type, in the words that the rest of the reading knows: "w/o", "ctx", "a2a", "full ac"."""

import re

_SHORT: tuple[tuple[str, str], ...] = (
    (r"w/o\b", "without"),
    (r"w/\s?(?=\w|#)", "with "),
    (r"\bw(?=\s+(?:tp|pp|ep|cp|fsdp|dp|remat\w*|fp8|memory|#?\d))", "with"),
    (r"\bwhats\b", "what is"),
    (r"\bwheres\b", "where is"),
    (r"\bhows\b", "how is"),
    (r"\b(does|is|can|wo|do|did)nt\b", r"\1n't"),
    (r"\br u\b", "are you"),
    (r"\b(?:pls|plz)\b", "please"),
    (r"\bno\.\s*(?=[1-9]\b)", "number "),
    (r"\bprop\.?\s*(?=[1-9]\b)", "proposal "),
    (r"\bctx\b", "context"),
    (r"\bseq ?lens?\b", "sequence length"),
    (r"\bcomms?\b", "communication"),
    (r"\b1f1b\b", "schedule"),
    (r"\ba2a\b", "all-to-all"),
    (r"\bgigs?\b", "GiB"),
    (r"\bmem\b", "memory"),
    (r"\bthru-?put\b", "throughput"),
    (r"\bopt(?:im)?(?=\s+states?\b)", "optimizer"),
    (r"\b(full|selective|no|without|disable|drop|off|enable|with) ac\b", r"\1 recomputation"),
    (r"\bac (?=off\b|on\b|full\b|selective\b|none\b)", "recomputation "),
    (r"\b(?:act(?:ivation)?s?|grad(?:ient)?) (?:ckpt\w*|checkpoints?)\b", "activation checkpointing"),
    (r"\bgrad(?:ient)?s?[- ]acc(?:um)?\b", "gradient accumulation"),
    (r"\bmicro ?bs\b", "micro batch size"),
)  # fmt: skip
_TABLE = tuple((re.compile(pattern, re.I), words) for pattern, words in _SHORT)


def spelled_out(text: str) -> str:
    """The text with short forms in full."""
    for pattern, words in _TABLE:
        text = pattern.sub(words, text)
    return text
