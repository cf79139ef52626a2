"""Options and completions that commands share."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asap.cli.shared.output import Verbosity, verbosity, warn
from asap.core.files import exists, user_path
from asap.core.numbers import LARGEST_COUNT

if TYPE_CHECKING:
    from asap.study.study import Preferences


def experiments(incomplete: str) -> Iterator[str]:
    """IDs of experiments."""
    from asap.experiments import ExperimentStore

    yield from (name for name in ExperimentStore().ids() if name.startswith(incomplete))


def profile_path(target: str) -> str:
    """A path that exists, else where the profile of the experiment of that ID lies.

    Raises:
        NotFoundError: the experiment has none.
    """
    if exists(user_path(target)):
        return target
    from asap.experiments import ExperimentStore

    return ExperimentStore().profile_of(target)


def session_names(incomplete: str) -> Iterator[str]:
    """Names of sessions, the newest first."""
    from asap.sharding_memory import sessions

    yield from (name for name in reversed(sessions()) if name.startswith(incomplete))


def plan_terms(incomplete: str) -> Iterator[str]:
    """The next axis or setting of a plan, behind what is typed: ``data=8 mo`` → ``data=8 model=``."""
    from asap.plans.axes import AXES
    from asap.plans.plan import SETTINGS

    *typed, last = incomplete.split(" ")
    used = {term.partition("=")[0] for term in typed}
    for term in (*AXES, *SETTINGS):
        if term.startswith(last) and term not in used:
            yield " ".join([*typed, f"{term}="])


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
    from asap.study.study import Preferences

    if unknown := [plain(name, 40) for name in allow if name not in ON_REQUEST]:
        message, known = f"{unknown[0]!r} is not a lever that can be allowed", ", ".join(ON_REQUEST)
        raise UsageError(message, where="--allow", hint=f"one of {known}")
    if prices is None:
        return Preferences(frozenset(allow), steps_to_go)
    from asap.ci.source.policy import read_prices

    found = read_prices(prices)
    return Preferences(frozenset(allow), steps_to_go, found.chips, found.currency)


Overrides = Annotated[list[str] | None, typer.Argument(help="For a configuration: its overrides, key=value …")]
Hardware = Annotated[str | None, typer.Option(help="Chips of the run: v5e-256, h100-64, 8x p5.48xlarge.")]
Topology = Annotated[str | None, typer.Option(help="Chips along each torus axis of a slice: 16x16.")]
Slices = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Slices of the job.")]
Network = Annotated[
    str | None,
    typer.Option(help="Rate between nodes, if not the maker's: 8x200Gb (of a node), 1600Gb/node, 200Gb/gpu."),
]
Batch = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Sequences in a step, whole job.")]
SequenceLength = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Tokens in a sequence.")]
StepTime = Annotated[
    str | None, typer.Option(help="The measured step, if no profile has it: 2.31s, or a training log.")
]

_LEVERS = "A lever on request: first_moment, second_moment, weight_precision, optimizer, global_batch. Repeatable."
Allow = Annotated[list[str] | None, typer.Option(help=_LEVERS)]
StepsToGo = Annotated[int | None, typer.Option(min=1, help="Steps still to train: what is a test worth?")]
Prices = Annotated[Path | None, typer.Option(help="TOML file with currency and [chips]: price per chip-hour.")]
TrainStep = Annotated[str | None, typer.Option(help="Compile your own step: package.module:function.")]
MaxText = Annotated[bool, typer.Option("--maxtext", help="Compile MaxText's own step, with the settings on record.")]
Python = Annotated[str, typer.Option(help="Python that has MaxText or your packages, to compile with.")]
Engine = Annotated[str, typer.Option(envvar="ASAP_ENGINE", help="Where to compile: local, or ray://HOST:PORT.")]

_FIELDS = {
    "hardware": ("hardware", Hardware),
    "topology": ("topology", Topology),
    "slices": ("slices", Slices),
    "network": ("network", Network),
    "batch": ("global_batch", Batch),
    "sequence": ("sequence_length", SequenceLength),
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


def say_usage(session: str) -> None:
    """Calls, tokens and cost of each model on standard error; nothing in a pipe, or for the built-in model alone."""
    from asap.agents.llm.usage import in_words, summed, usages
    from asap.agents.settings import BUILTIN
    from asap.sharding_memory import read_session

    if not sys.stderr.isatty() and verbosity() is not Verbosity.VERBOSE:
        return
    for used in summed(usages(read_session(session))):
        if used.model != BUILTIN:
            warn(f"{used.model}: {in_words(used)} in session {session}")
