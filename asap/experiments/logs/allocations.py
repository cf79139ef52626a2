"""The largest allocations of a program that does not fit, as XLA lists them."""

from collections.abc import Sequence
from typing import cast

from asap.core.secrets import redacted
from asap.core.text import plain
from asap.experiments.logs.formats import EndingForm
from asap.experiments.logs.scan import Found
from asap.experiments.logs.text import size
from asap.experiments.observed import Allocation

_LINES_OF_ITEM, _MOST_LISTED = 4, 5


def largest_of(lines: Sequence[Found]) -> tuple[Allocation, ...]:
    """Allocations of a list whose items begin with a size, and have shape and operation in the next lines; a list that
    several ranks or an exception within another repeat counts once."""
    items: list[dict[str, str]] = []
    begun = 0
    for one in lines:
        fields = cast(EndingForm, one.form).read(one.text)
        if "size" in fields:
            items.append(fields)
            begun = one.line
        elif items and one.line - begun <= _LINES_OF_ITEM:
            items[-1] = {**fields, **items[-1]}
    known = [
        Allocation(
            size_bytes=held, shape=item.get("shape"), operation=redacted(plain(item.get("operation", ""), 160)) or None
        )
        for item in items
        if (held := size(item["size"]))
    ]
    return tuple(sorted(dict.fromkeys(known), key=lambda one: -one.size_bytes)[:_MOST_LISTED])
