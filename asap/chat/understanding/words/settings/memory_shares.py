"""A share of the memory that may be used, in bytes: "not beyond 90 % of hbm", "keep 10 % headroom"."""

import re

from asap.chat.understanding.words.questions import is_question
from asap.core.units import GIB
from asap.study.study import Study

_LIMITS = (
    r"(?:(?:not|no|never|can ?not|can't|won't|don't)\b[^.?!%]{0,24}\b(?:more than|over|above|beyond|past|exceed\w*)"
    r"|(?:keep|stay|remain|must|limit|cap)\w*\b[^.?!%]{0,24}\b(?:under|below|within|at|to)|at most|max(?:imum)?)"
)
_MEMORY = r"(?:of )?(?:the |our )?(?:hbm|v?ram|(?:gpu |device )?mem(?:ory)?)"
_MOST = re.compile(rf"\b(?P<limit>{_LIMITS})\s+(?:of\s+)?(?P<share>\d{{1,2}})\s?(?:%|percent)\s*{_MEMORY}\b", re.I)
_FREE = re.compile(
    r"\b(?:keep|leave|need|want|require)\w*\s+(?:at least |about |some )?(?P<share>\d{1,2})\s?(?:%|percent)\s*"
    rf"(?:{_MEMORY} )?(?:of )?(?:headroom|margin|slack|free|spare|room)\b"
    r"(?:\s+(?:in|of|for) (?:the |our )?(?:hbm|memory))?",
    re.I,
)
_HELD = re.compile(
    r"(?<![\w.$])(?P<held>\d{1,3}(?:\.\d+)?)\s*(?:gi?b?)?\s*(?:/|of|out of)\s*"
    r"(?:the\s+|our\s+)?(?P<room>\d{2,3}(?:\.\d+)?)"
    r"\s*(?:gi?b?)?(?=\W*$|\s*[,;?!]|\.(?!\d)|\s+(?:is|was|used|on|in|per|and|but|that|which|so|now|already|hbm)\b)",
    re.I,
)
"""What a chip holds of its memory, without a word for it: "82 of 95, tight"."""
_SEEN = re.compile(
    r"\b(?:xprof|nvidia-smi|nvtop|dcgm|nsys|profil\w*|dashboard|wandb|tensorboard|monitor\w*|logs?|measured?|reports?|shows?"
    r"|we|i|our|us(?:ed|es|ing)|allocated|reserved|peaks?|peaked)\b",
    re.I,
)
"""Says that it was read off a run, where a proposal's figure may be quoted as well."""
_NAMED = re.compile(r"\b(?:hbm|v?ram|mem(?:ory)?|steps?|layers?|nodes?|[gt]pus?|chips?|hosts?)\b", re.I)
_TIGHT = re.compile(r"\b(?:tight|headroom|hbm|memory|vram|too full|oom)\b", re.I)
_BARE_LIMIT = re.compile(
    r"\b(?:max(?:imum)?|at most|limit(?: is)?|cap(?: is| at)?|(?:stay|keep it|keep) (?:under|below)"
    r"|no more than)\s+(?P<most>\d{2,3})"
    r"(?![.,]?\d|\s*(?:%|x\b|gi?b?\b|[a-z]*(?:batch|sequence|chip|gpu|node|step|layer)))",
    re.I,
)
"""The most that may be held, without its unit: "too tight, max 60"."""
_NEAR = 0.03


def _with_name(found: re.Match[str], whole: float) -> str:
    """The figure with its name, where the other one is the memory of a chip, in GiB or in GB."""
    room = float(found["room"])
    near = any(abs(room - size) <= _NEAR * size for size in (whole, whole * GIB / 1e9))
    return f"hbm {found['held']} GiB of {found['room']}" if near and float(found["held"]) <= room else found.group()


def with_memory_in_bytes(text: str, study: Study) -> str:
    """The text with a share of the memory of a chip, of which it says that no more is to be used, in GiB, and with the
    name of what is held of it."""
    if study.slice is None:
        return text
    chip = study.slice.chip
    whole = chip.hbm_bytes / chip.devices / GIB
    if _SEEN.search(text) and not _NAMED.search(text):
        text = _HELD.sub(lambda found: _with_name(found, whole), text)
    if is_question(text):
        return text
    if _TIGHT.search(text):
        text = _BARE_LIMIT.sub(
            lambda found: f"{found.group()} GiB hbm" if int(found["most"]) <= whole else found[0], text
        )
    text = _MOST.sub(lambda found: f"{found['limit']} {whole * int(found['share']) / 100:.1f} GiB hbm", text)
    return _FREE.sub(lambda found: f"no more than {whole * (100 - int(found['share'])) / 100:.1f} GiB hbm", text)
