"""Scripts of Fish in the words of the Bourne shell: ``set -x TP 4``, ``if test $TP -gt 1 … end``, ``(math $A \\* 8)``
(fishshell.com/docs/current/fish_for_bash_users.html)."""

import re
from collections.abc import Iterator

_SHEBANG = re.compile(r"#![^\n]*[/ ]fish\b")
_UNLESS_SET = re.compile(r"set -q (\w+)(?:\s*;\s*|\s+)or (?=set\b)")
_SET = re.compile(r"set\b((?:\s+-{1,2}[A-Za-z-]+)*)\s+([A-Za-z_]\w*)\b(.*)", re.DOTALL)
_MATH = re.compile(r"\(math\s+((?:[^()]|\([^()]*\))*)\)")
_COUNT = re.compile(r"\(count \$argv\)")
_SUBSTITUTION = re.compile(r"(?<=[\s=])\((?=[A-Za-z])")
_ARGUMENT = re.compile(r"\$argv(?:\[(\d+)\])?")
_ELEMENT = re.compile(r"\$([A-Za-z_]\w*)\[(\d+)\]")
_TEST = re.compile(r"(?<![\w-])test\s+((?:\"[^\"]*\"|'[^']*'|[^;&|\"'])+)")
_JOINED = re.compile(r"\s*;\s*(and|or)\s+")
_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|\$\((?:[^()]|\([^()]*\)|\(\([^()]*\)\))*\)|[^\s\"']+")
_SIGNS = {"and": " && ", "or": " || "}
_CLOSED = {"if": "fi", "for": "done", "while": "done", "function": "}", "begin": "}", "switch": "esac"}


def is_fish(text: str, suffix: str) -> bool:
    """Whether a script is one of Fish."""
    return suffix == ".fish" or _SHEBANG.match(text) is not None


def from_fish(text: str) -> str:
    """The script as the Bourne shell has it, line by line."""
    return "\n".join(_lines(text))


def _lines(text: str) -> Iterator[str]:
    open_: list[str] = []
    waiting = ""
    skipped = 0
    for line in text.splitlines():
        if line.endswith("\\"):
            waiting, skipped = f"{waiting}{line[:-1]} ", skipped + 1
            continue
        yield _line(f"{waiting}{line}".strip(), open_)
        yield from [""] * skipped
        waiting, skipped = "", 0
    yield waiting


def _line(line: str, open_: list[str]) -> str:
    if not line or line.startswith("#"):
        return line
    line = _COUNT.sub("$#", line)
    line = _MATH.sub(lambda found: f"$(({_formula(found[1])}))", line)
    line = _SUBSTITUTION.sub("$(", line)
    line = _ARGUMENT.sub(lambda found: f"${found[1]}" if found[1] else "$@", line)
    line = _ELEMENT.sub(lambda found: f"${{{found[1]}[{int(found[2]) - 1}]}}", line)
    line = _UNLESS_SET.sub(r'[ -n "$\1" ] || ', line)
    line = _JOINED.sub(lambda found: _SIGNS[found[1]], line)
    first, _, rest = line.partition(" ")
    if first == "end":
        return _CLOSED.get(open_.pop() if open_ else "", "") + rest
    if first in _CLOSED:
        open_.append(first)
    if first in ("if", "while") or line.startswith("else if "):
        word = "elif" if first == "else" else first
        condition = _tested(rest.removeprefix("if ")).replace("not [", "! [")
        return f"{word} {condition}; {'do' if first == 'while' else 'then'}"
    if first == "for":
        return f"{line}; do"
    if first == "function":
        return f"{rest.split()[0] if rest.split() else 'unnamed'}() {{"
    if first == "begin":
        return "{"
    if first == "switch":
        return f"case {rest} in"
    if first == "case":
        return f";; {'|'.join(word.strip(chr(39)) for word in rest.split())})"
    return " ".join(_assigned(part) for part in re.split(r"(&&|\|\|)", _tested(line)))


def _assigned(command: str) -> str:
    """A command, or what ``set`` gives a variable as an assignment."""
    found = _SET.fullmatch(command.strip())
    if found is None:
        return command.strip()
    flags, name, values = found[1], found[2], _WORD.findall(found[3])
    if re.search(r"-e\b|--erase|-q\b|--query", flags):
        return f"unset {name}" if "e" in flags else ":"
    exported = "export " if re.search(r"-[a-zA-Z]*x|--export", flags) else ""
    if re.search(r"-[gl]*a\b|--append", flags):
        return f"{name}+=({' '.join(values)})"
    value = values[0] if len(values) == 1 else f"({' '.join(values)})" if values else ""
    return f"{exported}{name}={value}"


def _tested(line: str) -> str:
    return _TEST.sub(lambda found: f"[ {found[1].strip()} ] ", line)


def _formula(text: str) -> str:
    return text.replace("\\*", "*").strip("\"'").replace(" x ", " * ")
