"""Numbers, times and what is counted as people write them: ``16k``, ``30,000``, ``1.5M``, ``2310 ms``, ``gbs``."""

import re
from typing import Literal

_NUMBER = re.compile(r"(\d{1,15}(?:,\d{3})*)(\.\d{1,15})?([kKmM]?)", re.ASCII)
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
_SCALES = {"": 1, "k": 1000, "m": 1_000_000}
COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "eight": 8, "sixteen": 16}
Noun = Literal[
    "global_batch", "sequence_length", "chips", "slices", "microbatches", "steps", "price", "s", "ms", "%", "GiB",
    "tokens/s", "TFLOP/s", "remat", "nodes", "micro_batch", "time",
]  # fmt: skip
NOUNS: dict[str, Noun] = {
    **{
        f"{first}{joint}batch{size}": "micro_batch"
        for first in ("micro", "local") for joint in ("", " ", "-", "_") for size in ("", " size", "_size")
    },
    "batch": "global_batch", "batches": "global_batch", "batchsize": "global_batch", "gbs": "global_batch",
    "sequences": "global_batch", "samples": "global_batch", "seq": "sequence_length", "sequence": "sequence_length",
    "context": "sequence_length", "seqlen": "sequence_length", "ctx": "sequence_length", "tokens": "sequence_length",
    "chip": "chips", "chips": "chips", "gpu": "chips", "gpus": "chips", "tpus": "chips", "devices": "chips",
    "accelerators": "chips", "nodes": "nodes", "node": "nodes",
    "hosts": "nodes", "machines": "nodes", "slices": "slices", "slice": "slices", "microbatches": "microbatches",
    "microbatch": "microbatches", "accumulation": "microbatches", "steps": "steps", "usd": "price",
    "dollars": "price", "dollar": "price", "s": "s", "sec": "s", "seconds": "s", "ms": "ms", "%": "%",
    "percent": "%", "mfu": "%", "remat": "remat", "rematerialisation": "remat", "rematerialization": "remat",
    "recomputation": "remat", "gib": "GiB", "gb": "GiB", "tokens/s": "tokens/s", "tok/s": "tokens/s",
    **{f"{rate}{each}": "TFLOP/s" for rate in ("tflop/s", "tflops", "tflops/s") for each in ("", "/gpu", "/chip")},
}  # fmt: skip
BINARY = 1024
"""What k stands for in a length or a batch that is a power of two: 16k tokens are 16,384."""


def number(text: str) -> float | None:
    """The number that a text is; ``16k`` is 16,384 where that is a power of two, as sequences and batches are."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    value, scale = float(found[1].replace(",", "") + (found[2] or "")), found[3].lower()
    whole = value.is_integer() and int(value) & (int(value) - 1) == 0
    if scale == "k" and whole:
        return value * BINARY
    found_value = value * _SCALES[scale]
    return int(found_value) if found_value.is_integer() else found_value


def seconds(value: float, unit: str) -> float:
    """A time in seconds."""
    return value * _SECONDS.get(unit.lower(), 1.0)
