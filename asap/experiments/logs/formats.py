"""The lines that training programs print, as tables: steps, statements, endings, devices (``tables/*.toml``)."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

_TABLES = Path(__file__).parent / "tables"
_EXPONENT = re.compile(r"(?<=[\d.])e[-+]\d+")
_LONGEST = 4000  # characters of a line that are searched for fields


@dataclass(frozen=True)
class Form:
    """One form of line: a text that it contains, and what to search for in it.

    ``bar`` is a progress bar, which is a step's only where it has no other title. ``spread``: what belongs to one step
    stands on several lines. ``first``: of several such lines the first counts. ``from_zero``: so are its steps counted.
    ``general``: of no program; it counts where nothing else says it.
    """

    anchor: bytes
    stack: str = "any"
    fields: Mapping[str, "re.Pattern[str] | _Metric"] = field(default_factory=dict)
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
    r"(?i)^(?:.{{0,80}}?(?:\]|INFO:?(?:[\w.]+:)?|-|>) +)?\W{{0,8}}(?:{})"
    r"[\"']?\s*(?:[:=|│]|\.{{2,}})\s*[\"']?(\d+(?:,\d{{3}})*)[\"',;|│\s]*(?:\s#.*)?$"
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
        for text in one["anchors"]
        for anchor in ({text, text.capitalize(), text.title(), text.upper()} if one.get("any_case") else [text])
    )


@cache
def devices() -> tuple[DeviceForm, ...]:
    """What names the chip."""
    said = table("devices")["program"]
    lines = [line for program in said for line in program.get("lines", {}).items()]
    lines += [(anchor, program["pattern"]) for program in said for anchor in program.get("anchors", ())]
    return tuple(DeviceForm(anchor.encode(), re.compile(pattern)) for anchor, pattern in lines)


def _forms(one: Mapping[str, Any]) -> tuple[Form, ...]:
    metrics = {name: table("steps")["metric"][name] for name in one.get("metrics", ())}
    fields: dict[str, re.Pattern[str] | _Metric] = {}
    fields |= {name: re.compile(pattern) for name, pattern in one.get("fields", {}).items()}
    fields |= {f"of {name}": _metric(metric, one.get("general", False)) for name, metric in metrics.items()}
    said = {name: one[name] for name in ("bar", "spread", "from_zero", "general") if name in one}
    anchors = {*one.get("anchors", ()), *([one["anchor"]] if "anchor" in one else ())}
    anchors |= {text for metric in metrics.values() for text in _spelt(metric["names"]) if len(text) > 6}
    return tuple(Form(anchor=text.encode(), stack=one["stack"], fields=fields, **said) for text in _least(anchors))


_SCOPES = ("train", "training", "step", "avg", "mean")
_BEFORE = "|".join((
    "^", r"(?<=[^a-z _/.-])", r"(?<=[^a-z _/.-]\s)", r"(?<=\s\s)", *(rf"(?<=\d[a-z%]{{{n}}} )" for n in (1, 2, 3)),
    "(?-i:(?<=[A-Z]{4} ))", "(?<=[^dlt]/)", *(f"(?<={scope}[ _.-])" for scope in _SCOPES), r"(?<=[\"']_)",
))  # fmt: skip
_OTHER_UNIT = r"(?![\d.,:]| ?(?:ms|us|µs|ns|m|min|minutes?|h|hours?|%)(?![a-z]))"
_CLASS, _MOST_CLASSES = re.compile(r"<(\w+)>"), 4


@dataclass(frozen=True)
class _Metric:
    """A pattern that is searched for only where one of some texts is, which is quicker to see."""

    signs: tuple[str, ...]
    pattern: re.Pattern[str]

    def search(self, text: str) -> re.Match[str] | None:
        lowered = text.lower()
        return self.pattern.search(text) if any(sign in lowered for sign in self.signs) else None


def _metric(metric: Mapping[str, Any], of_step: bool) -> _Metric:
    """The value of a metric, in a group for each unit, behind a sign; in a line ``of_step`` a space is enough."""
    known = [text for name in metric["names"] for text in _expanded(name)]
    begun, values = "".join(sorted({text[0] for text in known})), table("steps")["value"]
    number, fields = values["number"], list[str]()
    is_ = rf"[\"']?\.?(?:\s*[:=：]{'|(?=[ ])' if of_step else ''})\s*[\"']?"
    for name, units in metric["units"].items():
        if texts := "|".join(values[unit] for unit in units if unit in values):
            fields.append(rf"{is_}(?P<{name}>{texts})")
            continue
        unit = _any(filter(None, units))
        behind = rf"(?:[\d.,]+ ?\()?(?=[\d.,]+(?:/[\d.]+)? ?(?:{unit})(?![a-z]))"
        said = [rf"(?:[ _]?\((?:{unit})\)|[ _](?:{unit})){is_}(?=[\d.])", is_ + behind] if unit else []
        said += [rf"{is_}(?={number}{_OTHER_UNIT})"] if "" in units else []
        fields.append(rf"(?:{'|'.join(said)})(?P<{name}>{number})")
    pattern = re.compile(rf"(?i)(?=[{begun}])(?:{_BEFORE})(?:{_any(metric['names'])})(?:{'|'.join(fields)})")
    return _Metric(_least(max(re.split("[ /]", text), key=len) for text in known), pattern)


def _least(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts one of which every other of them contains."""
    known = sorted({*texts})
    return tuple(text for text in known if not any(other in text for other in known if other != text))


def _any(names: Iterable[str]) -> str:
    """A pattern of names, words of which may be any of a class: ``<step> time``."""
    words = table("steps")["word"]
    spaced = (name.replace(" ", "[ _/.-]?") for name in names)
    return "|".join(_CLASS.sub(lambda found: f"(?:{_any(words[found[1]])})", name) for name in spaced)


def _expanded(name: str) -> Iterable[str]:
    """A name with each word of the classes in it."""
    words = table("steps")["word"]
    return map("".join, product(*(words[part] if n % 2 else [part] for n, part in enumerate(_CLASS.split(name)))))


def _spelt(names: Iterable[str]) -> set[str]:
    """How names are written, but for a first letter, which may be a capital; longer ones have a shorter in them."""
    found = (text for name in names if name.count("<") < _MOST_CLASSES for text in _expanded(name))
    spelt = ((name, each) for name in found for each in (*(name.replace(" ", by) for by in " _/-"), name.title()))
    return {each[len(name.split()[0]) > 1 :] for name, each in spelt}


@cache
def table(name: str) -> dict[str, Any]:
    """A file of ``tables``, by its name."""
    return tomllib.loads((_TABLES / f"{name}.toml").read_text(encoding="utf-8"))


TIMED = frozenset(table("steps")["timed"])  # fields that say a time or a rate
