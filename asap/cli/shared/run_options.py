"""The options that describe a run, the same in every command that reads one."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from asap.core.numbers import LARGEST_COUNT

Hardware = Annotated[str | None, typer.Option(help="Chips of the run: v5e-256, h100-64, 8x p5.48xlarge.")]
Topology = Annotated[str | None, typer.Option(help="Chips along each torus axis of a slice: 16x16.")]
Slices = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Slices of the job.")]
Network = Annotated[
    str | None,
    typer.Option(help="Rate between nodes, if not the maker's: 8x200Gb (of a node), 1600Gb/node, 200Gb/gpu."),
]
Batch = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Sequences in a step, whole job.")]
Sequence = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Tokens in a sequence.")]
StepTime = Annotated[
    str | None, typer.Option(help="The measured step, if no profile has it: 2.31s, or a training log.")
]

_FIELDS = {
    "hardware": ("hardware", Hardware),
    "topology": ("topology", Topology),
    "slices": ("slices", Slices),
    "network": ("network", Network),
    "batch": ("global_batch", Batch),
    "sequence": ("sequence_length", Sequence),
    "step_time": ("step_time", StepTime),
}
"""Name of each option → field of :class:`asap.experiments.create.Statement` and type."""


def describes_run(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options in place of its parameter ``stated``, which takes them as one ``Statement``."""
    own = inspect.signature(command).parameters.values()

    @wraps(command)
    def called(**arguments: Any) -> None:
        from asap.experiments.create import Statement

        stated = Statement(**{field: arguments.pop(name) for name, (field, _) in _FIELDS.items()})
        command(**arguments, stated=stated)

    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, (_, kind) in _FIELDS.items()
    ]
    before = [parameter for parameter in own if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    behind = [parameter for parameter in own if parameter not in before and parameter.name != "stated"]
    called.__annotations__ = {
        **{name: kind for name, kind in command.__annotations__.items() if name != "stated"},
        **{option.name: option.annotation for option in options},
    }
    called.__signature__ = inspect.Signature([*before, *options, *behind])  # type: ignore[attr-defined]
    return called


def duration_s(text: str) -> float:
    """Seconds of a limit on time: ``90s``, ``30m``, ``2h``.

    Raises:
        UsageError: it is no duration.
    """
    from asap.core.errors import UsageError
    from asap.core.text import plain

    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
    number = text[:-1] if unit else text
    if number.replace(".", "", 1).isdecimal() and float(number) > 0:
        return float(number) * (unit or 1.0)
    raise UsageError(f"{plain(text, 40)!r} is not a duration", where="--time-limit", hint="90s, 30m, 2h")
