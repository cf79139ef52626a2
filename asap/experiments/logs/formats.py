"""The lines that training programs print, as tables: steps, statements, endings, devices (``tables/*.toml``)."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_TABLES = Path(__file__).parent / "tables"
_EXPONENT = re.compile(r"(?<=[\d.])e[-+]\d+")
_LONGEST = 4000
"""Characters of a line that are searched for fields."""


@dataclass(frozen=True)
class Form:
    """One form of line: a text that it contains, and what to search for in it.

    ``bar`` is a progress bar, which is a step's only where it has no other title. ``spread``: what belongs to one step
    stands on several lines. ``first``: of several such lines the first counts. ``from_zero``: so are its steps counted.
    ``general``: of no program; it counts where nothing else says it.
    """

    anchor: bytes
    stack: str = "any"
    fields: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    sets: Mapping[str, str] = field(default_factory=dict)
    axes: bool = False
    bar: bool = False
    spread: bool = False
    first: bool = False
    from_zero: bool = False
    general: bool = False

    def read(self, line: str) -> dict[str, str]:
        """The fields that the line has, as text; each pattern has one group, and a number its exponent."""
        text = line[:_LONGEST]
        matches = {name: found for name, pattern in self.fields.items() if (found := pattern.search(text))}
        return {
            found.lastgroup or name: found[one := found.lastindex or 1]
            + (exponent[0] if (exponent := _EXPONENT.match(text, found.end(one))) else "")
            for name, found in matches.items()
        }


@dataclass(frozen=True)
class EndingForm:
    """Lines by which a run's end is told, and the figures in them."""

    kind: str
    anchor: bytes
    patterns: tuple[re.Pattern[str], ...]
    words: re.Pattern[str] | None = None

    @property
    def spans(self) -> bool:
        """Whether its figures may stand on several lines."""
        return self.kind == "out_of_memory" and bool(self.patterns)

    def tells(self, line: str) -> bool:
        """Whether a line that has the anchor tells an ending."""
        return self.words is None or self.words.search(line) is not None

    def read(self, line: str, rest: Sequence[str] = ()) -> dict[str, str]:
        """Named figures of the line; what it lacks, of the line and those behind it as one."""
        lines = [line[:_LONGEST], *rest] if self.spans else [line[:_LONGEST]]
        found: dict[str, str] = {}
        for text in dict.fromkeys((lines[0], "".join(lines), " ".join(lines))):
            for pattern in self.patterns:
                if match := pattern.search(text):
                    found = {**{k: v for k, v in match.groupdict().items() if v}, **found}
        return found


@dataclass(frozen=True)
class DeviceForm:
    """A line that names the chip, or counts chips or nodes."""

    anchor: bytes
    pattern: re.Pattern[str]


@cache
def steps() -> tuple[Form, ...]:
    """What is printed of each step."""
    return tuple(form for one in table("steps")["line"] for form in _forms(one))


@cache
def totals() -> tuple[Form, ...]:
    """What is printed once of a run, or now and then: memory, the time of all steps."""
    return tuple(form for one in table("steps")["total"] for form in _forms(one))


@cache
def statements() -> tuple[Form, ...]:
    """What programs say on a line of what they run with, and settings by their names, one a line."""
    lines = {
        field: (names, re.compile(_OF_SETTING.format(_any(names))))
        for field, names in table("settings")["lines"].items()
    }
    return tuple(
        Form(text.encode(), fields={field: pattern}, general=True)
        for field, (names, pattern) in lines.items()
        for text in sorted(_spelt(names))
    ) + tuple(
        Form(
            anchor.encode(),
            program["stack"],
            {name: re.compile(text) for name, text in said.items() if "(" in text},
            {name: text for name, text in said.items() if "(" not in text},
            axes=program.get("axes", False),
            first=program.get("first", False),
        )
        for program in table("statements")["program"]
        for anchor, said in program["lines"].items()
    )


_OF_SETTING = (
    r"(?i)^(?:.{{0,80}}?(?:\]|INFO:?|-|>) +)?\W{{0,8}}(?:{})[\"']?\s*(?:[:=|│]|\.{{2,}})\s*[\"']?(\d+)[\"',;|│\s]*$"
)


@cache
def endings() -> tuple[EndingForm, ...]:
    """How runs end."""
    return tuple(
        EndingForm(
            one["kind"],
            anchor.encode(),
            tuple(map(re.compile, one.get("patterns", ()))),
            re.compile(one["words"].replace("{anchor}", re.escape(anchor))) if "words" in one else None,
        )
        for one in table("endings")["ending"]
        for anchor in one["anchors"]
    )


@cache
def devices() -> tuple[DeviceForm, ...]:
    """What names the chip."""
    lines = (line for program in table("devices")["program"] for line in program["lines"].items())
    return tuple(DeviceForm(anchor.encode(), re.compile(pattern)) for anchor, pattern in lines)


def _forms(one: Mapping[str, Any]) -> tuple[Form, ...]:
    metrics = {name: table("steps")["metric"][name] for name in one.get("metrics", ())}
    fields = {name: re.compile(pattern) for name, pattern in one.get("fields", {}).items()}
    fields |= {f"of {name}": _metric(metric, one.get("general", False)) for name, metric in metrics.items()}
    said = {name: one[name] for name in ("bar", "spread", "from_zero", "general") if name in one}
    anchors = {*one.get("anchors", ()), *([one["anchor"]] if "anchor" in one else ())}
    anchors |= {text for metric in metrics.values() for text in _spelt(metric["names"]) if len(text) > 6}
    return tuple(Form(anchor=text.encode(), stack=one["stack"], fields=fields, **said) for text in sorted(anchors))


_SCOPES = ("train", "training", "step", "avg", "mean")
_BEFORE = "|".join((
    "^", r"(?<=[^a-z _/.-])", r"(?<=[^a-z _/.-]\s)", r"(?<=\s\s)", *(rf"(?<=\d[a-z%]{{{n}}} )" for n in (1, 2, 3)),
    "(?-i:(?<=[A-Z]{4} ))", "(?<=[^dlt]/)", *(f"(?<={scope}[ _.-])" for scope in _SCOPES),
))  # fmt: skip
_OTHER_UNIT = r"(?![\d.,:]| ?(?:ms|us|µs|ns|m|min|minutes?|h|hours?|%)(?![a-z]))"


def _metric(metric: Mapping[str, Any], of_step: bool) -> re.Pattern[str]:
    """The number of a metric, in a group for each unit; "" is none. A line ``of_step`` may have nothing but a space
    before it; it may be one of so many, or stand in parentheses behind that of all devices."""
    begun, number = "".join(sorted({name[0] for name in metric["names"]})), r"[\d.,]+(?:(?-i:[KM])(?![a-z]))?"
    is_ = rf"[\"']?\.?(?:\s*[:=]{'|(?=[ ])' if of_step else ''})\s*[\"']?"
    fields = list[str]()
    for name, units in metric["units"].items():
        unit = "|".join(filter(None, units))
        behind = rf"(?:[\d.,]+ ?\()?(?=[\d.,]+(?:/[\d.]+)? ?(?:{unit})(?![a-z]))"
        said = [rf"(?:[ _]?\((?:{unit})\)|[ _](?:{unit})){is_}(?=[\d.])", is_ + behind] if unit else []
        said += [rf"{is_}(?={number}{_OTHER_UNIT})"] if "" in units else []
        fields.append(rf"(?:{'|'.join(said)})(?P<{name}>{number})")
    return re.compile(rf"(?i)(?=[{begun}])(?:{_BEFORE})(?:{_any(metric['names'])})(?:{'|'.join(fields)})")


def _any(names: Iterable[str]) -> str:
    return "|".join(name.replace(" ", "[ _/.-]?") for name in names)


def _spelt(names: Iterable[str]) -> set[str]:
    """How names are written, without the first letter of a word, which may be a capital."""
    spelt = ((name, each) for name in names for each in (*(name.replace(" ", by) for by in " _/-"), name.title()))
    return {each[len(name.split()[0]) > 1 :] for name, each in spelt}


@cache
def table(name: str) -> dict[str, Any]:
    """A file of ``tables``, by its name."""
    return tomllib.loads((_TABLES / f"{name}.toml").read_text(encoding="utf-8"))
