"""The options ``--allow``, ``--steps-to-go`` and ``--prices``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asap.study.preferences import Preferences


def read_preferences(allow: Sequence[str], steps_to_go: int | None = None, prices: Path | None = None) -> "Preferences":
    """The preferences that these options state.

    Raises:
        UsageError: a lever that is not on request.
        NotFoundError: there is no such file of prices.
        ConfigError: it is malformed.
    """
    from asap.core.errors import UsageError
    from asap.core.text import plain
    from asap.levers.table import ON_REQUEST
    from asap.study.preferences import Preferences

    for name in allow:
        if name not in ON_REQUEST:
            known = ", ".join(ON_REQUEST)
            raise UsageError(
                f"{plain(name, 40)!r} is not a lever that can be allowed", where="--allow", hint=f"one of {known}"
            )
    if prices is None:
        return Preferences(frozenset(allow), steps_to_go)
    from asap.ci.source.policy import read_prices

    found = read_prices(prices)
    return Preferences(frozenset(allow), steps_to_go, found.chips, found.currency)
