"""How a run ended, by the lines that tell it and the losses of its last records; XLA's largest allocations."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from asap.core.secrets import redacted
from asap.core.text import plain
from asap.core.units import exact
from asap.experiments.logs.formats import EndingForm
from asap.experiments.logs.measured import StepLine, having, step_index
from asap.experiments.logs.scan import Found
from asap.experiments.logs.text import number, size
from asap.experiments.observed import Allocation, Ending, EndingKind

_LINES_OF_ITEM, _MOST_LISTED = 4, 5
_CASCADE = ("communication_error", "stopped", "crashed")
"""What other ranks print because one failed, from what is a cause to what follows from others."""
_REFUSALS = ("AssertionError", "ValueError", "ConfigError", "ArgumentError", "ValidationError", "NotImplementedError")
_ALLOCATION = "allocation"
_NAN_STEPS = 3
_MEMORY = ("needed", "requested", "in_use", "free", "capacity")


def ending_of(
    found: Sequence[Found], steps: Sequence[StepLine], records: Sequence[StepLine], said: Mapping[str, str]
) -> Ending:
    """The ending of a run, by its lines that tell one, those of its steps and other records of losses, and the last
    step and their number as single lines or settings have them."""
    ended = max((one.offset for one in found if cast(EndingForm, one.form).kind == "completed"), default=-1)
    steps = _drop_evaluation(steps, ended)
    # a progress bar is drawn once more behind what a program says at its end, or at its failure, and for one more step
    # behind what ends it from outside
    going_on = [step for step in steps if not step[0].bar or step[1].get("step") != step[1].get("total_steps")]
    last = next(groups := _redrawn(going_on), -1)
    last_but_one = next(groups, last) if going_on and going_on[-1][0].bar else last
    told = [(one, one.form.kind) for one in found if isinstance(one.form, EndingForm)]
    told = [(one, kind) for one, kind in told if one.offset >= (last_but_one if kind == "stopped" else last)]
    failures = [(one, kind) for one, kind in told if kind not in ("completed", _ALLOCATION)]
    done = next((one for one, kind in told if kind == "completed"), None)
    if done and not any(kind in ("out_of_memory", "collective_timeout") for _, kind in failures):
        failures = []
    if not failures:
        ended_well = _ending("completed", done, steps) if done else _by_count(steps, said)
        return _diverged([*steps, *records]) or ended_well
    causes = [one for one in failures if one[1] not in _CASCADE] or failures
    if all(kind == "collective_timeout" for _, kind in causes):  # others wait for the one that failed before
        before = [one for one in failures if one[1] == "crashed" and one[0].offset < causes[0][0].offset]
        causes = [one for one in before if "exception" in cast(EndingForm, one[0].form).read(one[0].text)] or causes
    first, kind = min(causes, key=lambda one: (1 + _CASCADE.index(one[1]) if one[1] in _CASCADE else 0, one[0].offset))
    alike = [one for one, other in failures if other == kind]
    figures: dict[str, str] = {}
    for one in alike:
        figures = {**cast(EndingForm, one.form).read(one.text, one.rest), **figures}
    if kind == "crashed" and not steps and figures.get("exception") in _REFUSALS:
        kind = "refused_settings"
    largest = largest_of([one for one, kind in told if kind == _ALLOCATION]) if kind == "out_of_memory" else ()
    ran = bool(number(said.get("batches_so_far", "")))
    return _ending(kind, first, steps, figures, ran).model_copy(update={"largest": largest})


def _redrawn(steps: Sequence[StepLine]) -> Iterator[int]:
    """Where the lines of each step begin, from the last step back; of those that are no bars only their own line."""
    for _, lines in groupby(reversed(steps), lambda one: step_index(one[1]) if one[0].bar else one[3]):
        yield min(one[3] for one in lines)


_NOT_FINITE = {"loss": ("nan", "-nan", "inf", "-inf"), "gradient": ("nan", "-nan")}
"""A scaled loss makes gradients infinite, and skips these steps."""


def _diverged(records: Sequence[StepLine]) -> Ending | None:
    """The ending of a run whose last records all have a loss or a gradient that is no number."""
    said: dict[int, str] = {}
    for _, fields, line, _ in sorted(having(records, *_NOT_FINITE), key=lambda one: one[2]):
        told = (f"{name}: {fields.get(name)}" for name, no in _NOT_FINITE.items() if fields.get(name, "").lower() in no)
        said[line] = said.get(line) or next(told, "")
    last = [*said.items()][-_NAN_STEPS:]
    if len(last) < _NAN_STEPS or not all(text for _, text in last):
        return None
    return Ending(kind="not_a_number", line=last[-1][1], line_number=last[-1][0])


def _drop_evaluation(steps: Sequence[Any], ended: int) -> list[Any]:
    """Steps but for what a program says behind the end of training: bars of another length, and a summary."""
    steps = [one for one in steps if not (-1 < ended < one[3] and one[0].general and step_index(one[1]) is None)]
    length = next((one[1].get("total_steps") for one in reversed(steps) if one[0].bar and one[3] < ended), None)
    return [
        one for one in steps if not (length and one[0].bar and one[3] > ended) or one[1].get("total_steps") == length
    ]


def _by_count(steps: Sequence[StepLine], said: Mapping[str, str]) -> Ending:
    """Completed, where the last step is the last of all: of a progress bar, only where the program says how many."""
    form, fields, line, _ = steps[-1] if steps else (None, said, None, 0)
    total = said.get("steps") or (None if form and form.bar else fields.get("total_steps"))
    last, count = number(fields.get("step", said.get("step", ""))), number(total or "")
    of_other = form and form.bar and number(fields.get("total_steps", "")) != count
    if last is None or count is None or count <= 0 or of_other or last + (form is not None and form.from_zero) < count:
        return Ending(kind="running")
    return Ending(kind="completed", line=f"step {exact(last)} of {exact(count)}", line_number=line)


def _ending(
    kind: str, one: Found, steps: Sequence[Any], figures: dict[str, str] | None = None, ran: bool = False
) -> Ending:
    said = figures if figures is not None else {}
    sizes: dict[str, Any] = {f"{name}_bytes": size(said[name]) for name in _MEMORY if name in said}
    return Ending(
        kind=cast(EndingKind, kind),
        line=redacted(plain(one.text.strip(), 400)),
        line_number=one.line,
        before_first_step=not (steps or ran) and kind != "completed",
        operation=said.get("operation"),
        exception=said.get("exception"),
        **{name: value for name, value in sizes.items() if value},
    )


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
