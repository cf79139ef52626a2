"""Stores beside the record that was asked for: what they hold helps, and no result depends on it."""

import warnings

from asap.core.secrets import redacted
from asap.core.text import plain

REPAIR = "`asap doctor --repair` mends it"
_LONGEST = 400


class StoreWarning(UserWarning):
    """A problem of a store that does not affect the result."""


def warn_of_store(message: object) -> None:
    """Say once that a store cannot be used, and what is done without it."""
    warnings.warn(plain(redacted(str(message)), _LONGEST), StoreWarning, stacklevel=3)
