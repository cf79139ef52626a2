"""A command as the line that asks for it: what :func:`asap.chat.language.parse` reads back."""

from collections.abc import Callable, Mapping
from typing import Any

from asap.chat.language import Command
from asap.core.numbers import as_setting

_VERBS = {"what_if": "what if", "next_test": "next", "explain": "why", "retract": "forget"}
_SHORT = {"global_batch": "batch", "sequence_length": "seq_len"}
_OPTIONS = {"price": "--price", "steps_to_go": "--steps", "currency": "--currency", "command": "--command"}


def written(command: Command) -> str:
    """The line of a command."""
    known = dict(command.arguments)
    if command.name == "record":
        return " ".join(part for part in _record(known) if part)
    writer = _WRITERS.get(command.name, _plain)
    return " ".join(part for part in (_VERBS.get(command.name, command.name), *writer(known)) if part)


def _plain(known: dict[str, Any]) -> list[str]:
    return [as_setting(value) for name, value in known.items() if name not in _OPTIONS] + [
        _OPTIONS[name] if value is True else f"{_OPTIONS[name]} {as_setting(value)}"
        for name, value in known.items()
        if name in _OPTIONS
    ]


def _compare(known: dict[str, Any]) -> list[str]:
    return [" vs ".join(known["plans"])]


def _what_if(known: dict[str, Any]) -> list[str]:
    plan: str = known.pop("plan", "")
    return [*[plan] * bool(plan), *(f"{_SHORT.get(name, name)}={as_setting(value)}" for name, value in known.items())]


def _sweep(known: dict[str, Any]) -> list[str]:
    vary: str = _SHORT.get(known["vary"]) or known["vary"]
    return [vary, *known.get("values", ())]


def _solve(known: dict[str, Any]) -> list[str]:
    target = known.get("target")
    of = "" if target is None else f"{as_setting(target)}s"
    of = f"{as_setting(target * 100)}%" if target and known["find"] == "mfu" else of
    return [known["find"], of, f"for {known['plan']}" if "plan" in known else ""]


def _plausible(known: dict[str, Any]) -> list[str]:
    value, metric = known["value"], known["metric"]
    figures = {"mfu": f"{as_setting(value * 100)}% mfu", "throughput": f"{as_setting(value)} tokens/s"}
    return [figures.get(metric, f"{as_setting(value)}s"), f"for {known['plan']}" if "plan" in known else ""]


def _record(known: dict[str, Any]) -> list[str]:
    what: str = known["what"]
    plan: str = known.get("plan") or "now"
    if what == "constraint":
        bound = {"most": "<=", "least": ">="}.get(known.get("bound", ""), "!=")
        return ["limit", f"{known['about']}{bound}{known['value']}" if "value" in known else known["about"]]
    if what in ("batch", "sequence", "network", "incumbent"):
        said = known.get("about") or as_setting(known.get("value"))
        return ["runs", plan if what == "incumbent" else f"{what}={said}"]
    if "value" not in known:
        return [{"out_of_memory": "oom"}.get(what, what), plan]
    metric = {"mfu": " mfu", "hbm_share": " hbm"}.get(what, "")
    space = "" if known["unit"].startswith("%") else " "
    return ["ran", plan, "=", f"{as_setting(known['value'])}{space}{known['unit']}{metric}"]


def _trace(known: Mapping[str, Any]) -> list[str]:
    return list(known.get("changes", ()))


_WRITERS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "compare": _compare,
    "what_if": _what_if,
    "sweep": _sweep,
    "solve": _solve,
    "plausible": _plausible,
    "trace": _trace,
}
