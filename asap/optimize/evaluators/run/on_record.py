"""Settings on record that a log should show as well: the batch, the length and the degrees that no try changes."""

import re
from collections.abc import Mapping

_DECISIVE = re.compile(
    r"(?:^|[._])(?:(?:global|micro|local|per_device|per_device_train)_batch_size|max_target_length|seq_length|seq_len|"
    r"(?:\w+_)?parallel(?:ism|_size|_degree))$"
)
_COUNT = re.compile(r"[1-9]\d{0,11}(?:\.\d{1,6})?", re.ASCII)


def decisive(settings: Mapping[str, object]) -> dict[str, str]:
    """Of the settings on record those that make it another run if they differ; no automatic ones such as -1."""
    found = {key: str(value) for key, value in settings.items() if _DECISIVE.search(key)}
    return {key: value for key, value in found.items() if _COUNT.fullmatch(value)}
