"""The values of a block: Megatron's dotted lines, JSON, YAML, or a Python object as it prints itself."""

import ast
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import dropwhile
from typing import Any

import yaml
from pydantic_core import from_json

from asap.core.numbers import bounded_from_text
from asap.core.secrets import strip_secrets
from asap.core.text import plain
from asap.experiments.logs.blocks import MOST_TEXT, RawBlock
from asap.models import find_architecture

_ENUM = re.compile(r"<?\b[A-Z]\w*\.(\w+)(?:: [^<>]*>)?$")
_OBJECT = re.compile(r"<(?:[^<>]|<[^<>]*>)*>")
_BEHIND = re.compile(r"(?<!\.)\.*(?:updated|default)$|(?<=^True).+|(?<=^False).+|(?<=^None).+")
"""GPT-NeoX writes behind each value whether it is a default; other ranks write into the same line."""
_DTYPE = re.compile(r"^(?:torch|jnp|np)\.(\w+)$")
_SOURCE = re.compile(r"^\s*[\w.]+ = .*\(\s*\w+=[a-z_][\w.]*[,)]")
"""A line of source code, which some programs write into their logs: an assignment, with names as arguments."""
_MOST_CUTS = 30
_YAML_FILE = re.compile(r"^(?:[\w.-]*/)*([\w.-]+)\.ya?ml$")


def values_of(block: RawBlock) -> dict[str, Any]:
    """The settings of a block without secrets; empty where its text does not follow its grammar."""
    return strip_secrets({key.replace("-", "_"): value for key, value in _values(block).items()})


def _values(block: RawBlock) -> dict[str, Any]:
    text = "\n".join(block.lines)[:MOST_TEXT]
    if block.kind == "arguments":
        pairs = (line.partition(" ") for line in block.lines)
        return {name: scalar(_BEHIND.sub("", value)) for name, _, value in pairs}
    if block.kind == "command":
        return _options(block.lines)
    if block.kind == "fields":
        fields = (line.strip().rstrip(",").partition("=") for line in block.lines)
        return {name: scalar(value) for name, _, value in fields}
    if block.kind == "json":
        found = _json(text) or _evaluated(text, {})
        if isinstance(found, dict) and found:
            return found
        # fields of an object that the log cuts, but for the last line, which it may have cut as well
        with suppress(ValueError, RecursionError):
            return _json(json.dumps(from_json(text[: text.rfind("\n")], allow_partial=True)))
        return {}
    if block.kind == "yaml":
        return _yaml(block.lines)
    return {} if _SOURCE.search(block.title) else _call(text)


def is_flattened(block: RawBlock) -> bool:
    """Whether a mapping has lost its indentation on the way: no line has any, and a key comes twice."""
    keys = [line.partition(":")[0] for line in block.lines if ":" in line and not line.lstrip().startswith("- ")]
    bare = [key.strip() for key in keys]
    is_flat = len({len(key) - len(key.lstrip()) for key in keys}) == 1
    return block.kind == "yaml" and is_flat and len(bare) > len({*bare})


def scalar(text: str) -> Any:
    """A value as a program printed it: a number, a list, ``None``, an enumeration's member, or the text itself."""
    text = text.strip()
    lowered = text.casefold()
    if lowered in ("none", "null", ""):
        return None
    if lowered in ("true", "false"):
        return lowered == "true"
    if found := _DTYPE.match(text) or _ENUM.match(text):
        return found[1].casefold() if text[0].isupper() or text[0] == "<" else found[1]
    if text[0] in "[({'\"" or text[0].isdigit() or text[0] in "+-.":
        value = _evaluated(text, plain(text, 400)) if len(text) < 20_000 else text
        return list(value) if isinstance(value, tuple | set) else value
    return plain(text, 400)


def command_of(lines: Sequence[str]) -> str:
    """The lines of a command as one, without the prompt of a shell or the word of a launcher that prints it."""
    width = max(len(line.rstrip()) for line in lines)  # at which a terminal broke them
    text = "".join(line.rstrip().removesuffix("\\") + ("" if len(line.rstrip()) == width else " ") for line in lines)
    return text.rpartition("cmd = ")[2].lstrip(" +$>#")


def _options(lines: Sequence[str]) -> dict[str, Any]:
    """Options, ``name=value`` and variables of a command, and the published model that its YAML file is called by."""
    words = command_of(lines).split()
    found: dict[str, Any] = {}
    for word, after in zip(words, [*words[1:], "-"], strict=True):
        name, equals, value = word.partition("=")
        if (file := _YAML_FILE.search(word)) and find_architecture(file[1]):
            found.setdefault("model_name", file[1])
        if not (word.startswith("--") and len(word) > 3) and not (equals and name.replace(".", "_").isidentifier()):
            continue
        value = value if equals else after
        name = name.casefold() if name.isupper() else name
        section, _, name = name.lstrip("+-").replace("-", "_").rpartition(".")
        inside = found.setdefault(section, {}) if section else found
        if isinstance(inside, dict):
            inside[name] = True if value.startswith("-") else scalar(value.strip("'\""))
    return found


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_int=bounded_from_text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _evaluated(literal: str | ast.expr, otherwise: Any) -> Any:
    try:
        return ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return otherwise


def _yaml(lines: list[str]) -> dict[str, Any]:
    """A YAML mapping; of one that is followed by other text, the part before it, without what its beginning lacks."""
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    kept = list(dropwhile(lambda line: line[:1].isspace(), (line[indent:] for line in lines)))
    for _ in range(_MOST_CUTS):
        try:
            found = yaml.load("\n".join(kept), Loader=_Loader)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            cut = min(mark.line if mark else len(kept) - 1, len(kept) - 1)
            kept = kept[:cut]
            continue
        return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
    return {}


class _Loader(yaml.SafeLoader):
    """YAML without references: a few lines of them can stand for any number of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """A node as YAML has it; raises YAMLError where it refers to another."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("refers to another value")
        return super().compose_node(parent, index)


def _call(text: str) -> dict[str, Any]:
    """The keywords of ``ModelArgs(dim=4096, …)`` with those of objects inside of it.

    Objects that print themselves as ``<…>`` count as unknown.
    """
    text = _OBJECT.sub("None", re.sub(r"<(\w+)\.(\w+): [^<>]*>", r"'\2'", text))
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        lines = re.findall(r"^[ \t]*(\w+)=(.{0,2000}?),?[ \t]*$", text, re.MULTILINE)  # of one whose text is no Python
        return {name: scalar(value) for name, value in lines}
    return _read_call(tree) if isinstance(tree, ast.Call) else {}


def _read_call(node: ast.Call) -> dict[str, Any]:
    return {one.arg: _read_node(one.value) for one in node.keywords if one.arg}


def _read_node(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        return _read_call(node)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_read_node(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_read_node(key)): _read_node(value) for key, value in pairs if key is not None}
    return node.value if isinstance(node, ast.Constant) else scalar(ast.unparse(node))
