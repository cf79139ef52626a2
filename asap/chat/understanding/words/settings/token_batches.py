"""A global batch that is said in tokens, in sequences of the run: "batch of 4M tokens" at 8192 is ``batch of 512``."""

import re

from asap.study.study import Study

_COUNT = r"(?P<count>\d+(?:\.\d+)?)\s?(?P<scale>k|m|million)(?:\s*-?\s*tok(?:en)?s?)"
_SAID = (
    re.compile(
        r"(?P<before>\b(?:global[_ -])?(?:batch(?:[_ -]size)?|gbs)"
        rf"(?:\s+(?:is|was|of|to|at|with|=))*\s*[=:]?\s*){_COUNT}\b(?!\s*(?:/|per|a)\s*(?:s|sec|second|chip|gpu|device)\b)",
        re.I,
    ),
    re.compile(
        rf"(?P<before>){_COUNT}\s+(?:(?:per|a|each|in a)\s+(?:global\s+)?(?:step|batch)\b|(?:global\s+)?batch\b)", re.I
    ),
)
_SEQUENCE = re.compile(r"\b(?:seq\w*|context)\b", re.I)
_SCALES = {"k": (1e3, 2.0**10), "m": (1e6, 2.0**20)}


def with_batches_in_sequences(text: str, study: Study) -> str:
    """The text with them; as it is where the sequence length is not known, another one, or leaves a rest."""
    length = study.experiment.workload.sequence_length
    if length is None or _SEQUENCE.search(text):
        return text
    for pattern in _SAID:
        text = pattern.sub(lambda found: _in_sequences(found, length), text)
    return text


def _in_sequences(found: re.Match[str], length: int) -> str:
    """Millions are 10^6 or 2^20, whichever is a number of whole sequences."""
    sizes = [float(found["count"]) * scale / length for scale in _SCALES[found["scale"][0].lower()]]
    whole = next((size for size in sizes if size >= 1 and size == int(size)), None)
    before = found["before"] or "batch "
    return found.group() if whole is None else f"{before}{whole:.0f}"
