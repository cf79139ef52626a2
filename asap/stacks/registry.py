"""All tables of stacks: by name, by the framework of a record, and by the keys of a file that are a stack's alone."""

import importlib
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.errors import ConfigError
from asap.plans.plan import Plan
from asap.stacks.rules import Rule, are_said, facts_of, needed
from asap.stacks.spec import Files, Spec

OURS = "asap."
"""What our own marks among settings on record begin with."""
STACK = "asap.stack"
"""Among settings on record: the name of the stack that takes them."""
OF_YAML = "asap.of_yaml"
"""Among settings on record: that they were given as YAML, whatever the stack's command takes."""
_FORMER = "program_under_fsdp"
"""What records of earlier releases have instead."""
FOLDER = Path(__file__).parent
"""With a folder a table."""
_TABLE, _OPTION = "spec.toml", re.compile(r"--([\w-]+)")


class Contract(BaseModel):
    """What holds of all stacks behind one key of ``overrides`` in asap.analysis (``contracts.toml``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    kin: Literal["jax"] | None = None
    of_core: bool = Field(
        default=False,
        description="runs on Megatron's core: replicates parameters, counts recomputed layers by stage, and has no"
        " default for the microbatch",
    )
    start: Literal["sharded", "split"] | None = Field(
        default=None, description="a first plan: FSDP over all devices, or the smallest split of the model"
    )
    sets_micro_batch: bool = Field(default=True, description="its size, not the number of microbatches")
    staged: bool = Field(default=False, description="whether a pipeline is a setting, and changes no code")
    uneven_stages: Literal["said", "virtual"] | None = Field(
        default=None,
        description="fewer layers in the last stage: where a setting says so, or the last virtual one, too",
    )
    tied_in_one_stage: bool = Field(default=False, description="whether tied embeddings have no pipeline")
    loops_over_experts: bool = Field(default=False, description="a layer's experts are computed one by one")
    moves_parameters: bool = Field(default=False, description="to the host with the optimizer, by one setting")
    one_line: bool = Field(default=True, description="whether a line to paste is one line of words")
    command: str = Field(default="", description="how its program is started with a file of settings and options")
    files: tuple[str, ...] = Field(default=(), description="endings of that file")
    depth: str = Field(default="", description="how its launcher is told another number of {layers}")
    levers: tuple[str, ...] = Field(default=(), description="settings beside the mesh that it has words for")
    policies: tuple[str, ...] = Field(default=("none", "selective", "full"), description="of recomputation, by name")
    shares: tuple[str, ...] = Field(default=(), description="of the layers that it can recompute as a whole")
    modules: bool = Field(default=False, description="whether it recomputes modules of each layer")
    every_second_product: bool = Field(default=False, description="whether its selective policy recomputes that")
    segments_grow: bool = Field(default=False, description="whether PyTorch's allocator is started with such")
    keeps_master: bool = Field(default=False, description="whether parameters of 16 bits have an fp32 copy")
    keeps_all: dict[str, str] = Field(
        default_factory=dict, description="settings beside which a policy of none is possible, as rules have them"
    )
    recomputed_by: dict[str, str] = Field(default_factory=dict, description="and any other policy than the present")
    offload_less: str = Field(default="offload less", description="how that is said")
    rematerialised_by: str = Field(default="", description="the setting of recomputation")


@cache
def contracts() -> Mapping[str, Contract]:
    """Every contract by its key."""
    values = tomllib.loads((FOLDER / "contracts.toml").read_text(encoding="utf-8"))
    return {key: Contract.model_validate(each) for key, each in values.items()}


class TrialWords(Rule):
    """A row of ``trials.toml``."""

    of: tuple[str, ...] = Field(description="keys of contracts, alone or with a framework")


@cache
def _trials() -> Mapping[str, tuple[TrialWords, ...]]:
    rows = tomllib.loads((FOLDER / "trials.toml").read_text(encoding="utf-8"))
    return {name: tuple(map(TrialWords.model_validate, each)) for name, each in rows.items()}


def words_of_trial(
    name: str, framework: str | None, contract: str, plan: Plan, settings: Mapping[str, object]
) -> Mapping[str, str]:
    """How a setting that is offered for a test is said under a key of the contract and a record's framework, beside a
    plan and settings; nothing where there are no words for it, or the release lacks them."""
    asked = {contract, f"{contract}.{framework}"}
    words = needed(tuple(row for row in _trials()[name] if asked & {*row.of}), facts_of(plan), settings)
    table = spec_of(contract, settings) if words else None
    lacks = table is not None and any(lacking(table, settings, key.replace("-", "_")) for key in words)
    return {} if lacks else words


@cache
def specs() -> Mapping[str, Spec]:
    """Every table, by the name of its folder."""
    return {name: spec(name) for name in _folders().values() if not _own_values(name).get("abstract")}


@cache
def spec(folder: str) -> Spec:
    """The table in a folder, which may be no stack by itself: arguments of programs that other stacks shard."""
    return Spec.model_validate({"name": folder} | _values(folder))


@cache
def commanded() -> tuple[Spec, ...]:
    """Tables of programs that a command starts, also those that are no stack by themselves."""
    return tuple(spec(folder) for folder in _folders().values() if "command" in _values(folder))


def capture_of(contract: str, settings: Mapping[str, object]) -> str:
    """How a run under a key of the contract is profiled, also by a table that others extend; empty where none does, or
    the release of these settings lacks the option."""
    table = spec_of(contract, settings)
    if table is None:
        return str(_values(contract).get("capture", "")) if (FOLDER / contract / _TABLE).exists() else ""
    options = (name.replace("-", "_") for name in _OPTION.findall(table.capture))
    lacks = not are_said(table.captures, settings) or any(lacking(table, settings, name) for name in options)
    return "" if lacks else table.capture


@cache
def by_framework(framework: str | None) -> Spec | None:
    """The table of a record's framework; ``None`` where it has none."""
    said = framework.casefold() if framework else None
    return next((one for one in specs().values() if one.framework.casefold() == said), None) if said else None


@cache
def _folders() -> dict[str, str]:
    """The folder of every table, by the name of its stack."""
    folders = (path.parent.name for path in sorted(FOLDER.glob(f"*/{_TABLE}")))
    return {str(_own_values(folder).get("name", folder)): folder for folder in folders}


@cache
def table_of(framework: str | None) -> Spec | None:
    """The same, also of a stack whose files no table alone reads."""
    folder = _folders().get(framework or "")
    return by_framework(framework) or (spec(folder) if folder else None)


def spec_of(contract: str, settings: Mapping[str, object]) -> Spec | None:
    """The table that settings on record are written by: the one they name, or the one of a key of the contract."""
    if contract == "maxtext":
        return spec(contract)
    said = settings.get(STACK, settings.get(_FORMER))
    found = [one for one in specs().values() if said in (None, one.name) and one.contract == contract]
    return found[0] if len(found) == 1 else specs().get(contract)


@cache
def irrelevant(folder: str) -> frozenset[str]:
    """Settings of a stack that change neither plan nor workload nor model (``irrelevant.txt``)."""
    path = FOLDER / folder / "irrelevant.txt"
    return frozenset(path.read_text(encoding="utf-8").split()) if path.exists() else frozenset()


@cache
def code(folder: str) -> tuple[ModuleType, ...]:
    """What of a stack's algebra no table says: ``<name>/stack.py`` of the table, then of the one that it extends."""
    extended, own = _own_values(folder).get("extends"), (FOLDER / folder / "stack.py").exists()
    modules = code(extended) if extended else ()
    return (importlib.import_module(f"{__package__}.{folder}.stack"), *modules) if own else modules


def hook(table: Spec, name: str) -> Callable[..., Any] | None:
    """A function of that name in the stack's own code, or in that which it extends; ``None`` where there is none."""
    return next((vars(module)[name] for module in code(folder_of(table)) if name in vars(module)), None)


def code_for(framework: str | None, name: str) -> Callable[..., Any] | None:
    """The same of the stack of a record's framework."""
    table = table_of(framework)
    return hook(table, name) if table else None


def code_of_all(name: str) -> tuple[Callable[..., Any], ...]:
    """The functions of that name that stacks have."""
    modules = dict.fromkeys(module for folder in _folders().values() for module in code(folder))
    return tuple(vars(module)[name] for module in modules if name in vars(module))


def folder_of(table: Spec) -> str:
    """Where a table lies."""
    return _folders().get(table.name, table.name)


@cache
def _own_values(folder: str) -> Mapping[str, Any]:
    return tomllib.loads((FOLDER / folder / _TABLE).read_text(encoding="utf-8"))


def _values(folder: str) -> dict[str, Any]:
    own = {key: value for key, value in _own_values(folder).items() if key not in ("abstract", "extends")}
    extended = _own_values(folder).get("extends")
    return merged(_values(extended), own) if extended else own


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One mapping laid over another: sections are merged, all else is replaced."""
    both = {key for key in below.keys() & above.keys() if isinstance(below[key], dict) and isinstance(above[key], dict)}
    return {**below, **above, **{key: merged(below[key], above[key]) for key in both}}


def lacking(table: Spec, settings: Mapping[str, object], key: str, past: tuple[str, ...] = ()) -> str | None:
    """A setting on record that no release of a stack takes which has ``key``; ``None`` where none tells.

    Args:
        table: of the stack.
        settings: on record.
        key: a setting.
        past: signs of earlier releases that do not count.
    """
    for place, release in enumerate(table.releases):
        said = (sign for sign in release.signs if sign not in past and settings.get(sign) not in (None, False))
        if (sign := next(said, None)) is not None:
            return sign if any(key in later.later for later in table.releases[place:]) else None
    return None


_OF_A_MARK = 3


def score(files: Files, settings: Mapping[str, object]) -> int:
    """How many of its own keys a mapping of dotted settings has; 0 where it lacks one that it needs."""
    sections = _add_sections(settings)
    if not sections.keys() >= set(files.needs):
        return 0
    marks = (key for key, pattern in files.marks.items() if re.search(pattern, str(settings.get(key, ""))))
    points = sum(key in sections for key in files.own) + _OF_A_MARK * len(tuple(marks))
    return points if points >= files.least else 0


def claimant(settings: Mapping[str, object], place: str, said: str | None = None) -> Spec | None:
    """The stack whose settings these are; ``None`` where it is none with a table.

    Args:
        settings: by dotted key.
        place: the file, for errors.
        said: the name of the stack, where the user says it.

    Raises:
        ConfigError: two stacks claim them, or there is none of the name that is said.
    """
    spelled = {key.replace("-", "_"): value for key, value in settings.items()}
    scores = {one.name: score(one.files, spelled if one.dashes else settings) for one in specs().values()}
    best = max(scores.values(), default=0)
    claiming = sorted(name for name, points in scores.items() if points == best and best)
    if said is not None:
        claiming = [one.name for one in specs().values() if one.name.casefold() == said.casefold()]
        if not claiming:
            raise ConfigError(f"there is no stack {said}", where=place, hint=f"one of {', '.join(sorted(scores))}")
    if len(claiming) > 1:
        hint = f"say which it is: add stack={claiming[0]}"
        raise ConfigError(f"has settings of {' and of '.join(claiming)}", where=place, hint=hint)
    return next((one for one in specs().values() if [one.name] == claiming), None)


def is_claimed(settings: Mapping[str, object]) -> bool:
    """Whether one stack or several have a claim on settings by dotted key."""
    return any(score(one.files, settings) for one in specs().values())


def _add_sections(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings, and the sections that they stand in."""
    parts = (key.split(".") for key in settings)
    sections = {".".join(words[:count]): True for words in parts for count in range(1, len(words))}
    return {**sections, **settings}


@cache
def _printing() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((FOLDER / "printing.toml").read_text(encoding="utf-8"))


def instead_of_log(stack: str | None) -> str:
    """What to do about a log that has no settings."""
    known, spec = _printing().get(stack or ""), specs().get(stack or "")
    prints = known["prints"] if known else spec.prints if spec else ""
    prints = f"{prints}: give a log that begins there" if prints else "start the run so that it prints its settings"
    return f"{prints}, or give the configuration, and this log with --step-time"


def instead_of_script(text: str, path: Path) -> str:
    """What to do about a script that cannot be read without running it.

    Args:
        text: of the script, which tells the stack.
        path: of the file, as the user named it.
    """
    known = next((one["prints"] for one in _printing().values() if any(map(text.__contains__, one["signs"]))), "")
    started = (one.prints for one in specs().values() if one.command and re.search(one.command.program, text))
    prints = known or next(started, "")
    log = f"give the log of the run ({prints})" if prints else "give the log of the run"
    is_makefile = path.suffix == ".mk" or path.name.casefold() in ("makefile", "gnumakefile")
    runs = "make -f" if is_makefile else {".py": "python", ".fish": "fish"}.get(path.suffix, "bash")
    return f"{log}, or `asap resolve -- {runs} {shlex.quote(str(path))}`"
