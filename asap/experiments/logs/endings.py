"""How a run ended: the first specific reason behind its last step, with its figures."""

from collections.abc import Sequence
from typing import Any, cast

from asap.core.secrets import redacted
from asap.core.text import plain
from asap.experiments.logs.formats import EndingForm
from asap.experiments.logs.scan import Found
from asap.experiments.logs.text import size
from asap.experiments.observed import Allocation, Ending, EndingKind

_SPECIFIC = (
    "out_of_memory", "out_of_host_memory", "not_a_number", "hardware_error", "out_of_data", "collective_timeout",
    "communication_error", "stopped", "crashed",
)  # fmt: skip
"""From what is a cause to what follows from others."""
_CASCADE = ("communication_error", "stopped", "crashed")
"""What other ranks print because one failed."""
_REFUSALS = ("AssertionError", "ValueError", "ConfigError", "ArgumentError", "ValidationError", "NotImplementedError")
_ALLOCATION = "allocation"
_NAN_STEPS = 3
_LINES_OF_ITEM, _MOST_LISTED = 4, 5
_MEMORY = ("needed", "requested", "in_use", "free", "capacity")


def ending_of(found: Sequence[Found], steps: Sequence[Any]) -> Ending:
    """The ending of a run.

    Args:
        found: lines of the run that tell an ending.
        steps: lines of its steps.
    """
    # a progress bar is drawn once more behind what a program says at its end
    going_on = (
        step[3] for step in reversed(steps) if not step[0].bar or step[1].get("step") != step[1].get("total_steps")
    )
    last = next(going_on, -1)
    listed = [one for one in found if one.offset >= last and isinstance(one.form, EndingForm)]
    behind = [one for one in listed if cast(EndingForm, one.form).kind != _ALLOCATION]
    kinds = [cast(EndingForm, one.form).kind for one in behind]
    failures = [(one, kind) for one, kind in zip(behind, kinds, strict=True) if kind != "completed"]
    if "completed" in kinds and not any(kind in ("out_of_memory", "collective_timeout") for kind in kinds):
        failures = []
    if not failures:
        if _is_nan(steps):
            return Ending(kind="not_a_number", line=f"loss: {steps[-1][1]['loss']}", line_number=steps[-1][2])
        done = next((one for one in behind if cast(EndingForm, one.form).kind == "completed"), None)
        return _ending("completed", done, steps) if done else Ending(kind="running")
    causes = [one for one in failures if one[1] not in _CASCADE] or failures
    first, kind = min(
        causes, key=lambda one: (_SPECIFIC.index(one[1]), one[0].offset) if one[1] in _CASCADE else (0, one[0].offset)
    )
    alike = [one for one, other in failures if other == kind]
    figures: dict[str, str] = {}
    for one in alike:
        figures = {**cast(EndingForm, one.form).read(one.text, one.rest), **figures}
    if kind == "crashed" and not steps and figures.get("exception") in _REFUSALS:
        kind = "refused_settings"
    largest = _largest([one for one in listed if one not in behind]) if kind == "out_of_memory" else ()
    return _ending(kind, first, steps, figures).model_copy(update={"largest": largest})


def _largest(lines: Sequence[Found]) -> tuple[Allocation, ...]:
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


def _is_nan(steps: Sequence[Any]) -> bool:
    """Whether the losses of the last steps are no numbers."""
    losses = [step[1]["loss"].casefold() for step in steps[-_NAN_STEPS:] if "loss" in step[1]]
    return len(losses) == _NAN_STEPS and all(loss in ("nan", "-nan", "inf", "-inf") for loss in losses)


def _ending(kind: str, one: Found, steps: Sequence[Any], figures: dict[str, str] | None = None) -> Ending:
    said = figures if figures is not None else {}
    sizes: dict[str, Any] = {f"{name}_bytes": size(said[name]) for name in _MEMORY if name in said}
    return Ending(
        kind=cast(EndingKind, kind),
        line=redacted(plain(one.text.strip(), 400)),
        line_number=one.line,
        before_first_step=not steps and kind != "completed",
        operation=said.get("operation"),
        exception=said.get("exception"),
        **{name: value for name, value in sizes.items() if value},
    )
