"""Configurations that MaxText ships besides base.yml, for scripts that name one where MaxText itself is not there
(``configs/sft*.yml``, since March 2026 ``configs/post_train``)."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from asap.experiments.files.documents import Document

_OF_MAXTEXT = re.compile(r"(?:^|/)maxtext/configs/", re.IGNORECASE)
_TUNING: dict[str, Any] = {"use_sft": True, "packing": True}
_OF_IMAGES: dict[str, Any] = {"use_sft": True, "packing": False, "use_multimodal": True}
_SHIPPED = {
    "sft.yml": _TUNING,
    "sft-vision-chartqa.yml": _OF_IMAGES,
    "sft-vision-coco-captions.yml": _OF_IMAGES,
    "sft-vision-slidevqa.yml": _OF_IMAGES,
}
"""What they say of a step over base.yml, which is next to nothing."""


def shipped(named: str) -> Document | None:
    """The configuration of MaxText's own that a path names; ``None`` where it names none."""
    name = PurePosixPath(named).name
    known = _SHIPPED.get(name) if _OF_MAXTEXT.search(named) else None
    return None if known is None else Document(Path(name), dict(known), {})
