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


def with_memory_in_bytes(text: str, study: Study) -> str:
    """The text with a share of the memory of a chip, of which it says that no more is to be used, in GiB."""
    if study.slice is None or is_question(text):
        return text
    chip = study.slice.chip
    whole = chip.hbm_bytes / chip.devices / GIB
    text = _MOST.sub(lambda found: f"{found['limit']} {whole * int(found['share']) / 100:.1f} GiB hbm", text)
    return _FREE.sub(lambda found: f"no more than {whole * (100 - int(found['share'])) / 100:.1f} GiB hbm", text)
