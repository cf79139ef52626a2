"""Pages of the reference, written from the code when the site is built; MkDocs loads this file as a hook."""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

VARIABLES = {
    "ASAP_HOME": "Folder of experiments, worklogs, indexes and compiled programs. Default: the platform's data folder.",
    "ASAP_MODEL": "The language model of the agents, as `--llm`. Default: `builtin/planner`, which needs no key.",
    "ASAP_ENGINE": "Where plans are compiled, as `--engine`: `local`, or `ray://HOST:PORT`.",
    "ASAP_PYTHON": "The Python that compiles in a chat: the one that has MaxText or your packages.",
    "ASAP_CHROMA_URL": "A Chroma server that a team shares for the indexes: `http://HOST:8000`. Default: local files.",
    "ASAP_EMBEDDER": "`gemini-…` to embed notes with a Gemini model, which needs a key. Default: our own embedding.",
    "ASAP_DEBUG": "Any value: show the traceback of an error, as `--debug`.",
    "GOOGLE_API_KEY": "Key of the Gemini API; other models read the variable that LiteLLM documents for them.",
    "NO_COLOR": "Any value: no colours in the output.",
    "GITHUB_TOKEN": "Token of `asap ci comment`; it may write to pull requests.",
    "GITHUB_EVENT_PATH": "The event file of `asap ci comment`; GitHub sets it.",
    "GITHUB_API_URL": "Base URL of the GitHub API for `asap ci comment`; GitHub sets it.",
    "PRE_COMMIT_FROM_REF": "Base commit of `asap ci`; pre-commit sets it.",
    "PRE_COMMIT_TO_REF": "Head commit of `asap ci`; pre-commit sets it.",
}


SCRIPTS = Path(__file__).resolve().parents[1]

JUDGED = ("prediction", "evidence", "proposals", "optimize", "knowledge", "calibration")
"""Rooms whose every number says where it comes from."""

WIDTH = 100
LONGEST_DEFAULT = 60


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the reference to those that are files."""
    from mkdocs.structure.files import File

    sys.path[:0] = [str(SCRIPTS), str(SCRIPTS.parent)]  # MkDocs takes back what a hook adds when it is loaded
    pages = {"cli": cli_page, "documents": documents_page, "settings": settings_page, "judgements": judgements_page}
    for name, page in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=page()))
    from documentation.documents import DOCUMENTS

    for document in DOCUMENTS:
        text = json.dumps(document.schema, indent=2, ensure_ascii=False)
        files.append(File.generated(config, f"reference/schemas/{document.file}", content=text))
    return files


def cli_page() -> str:
    """Every command with its ``--help``."""
    parts = ["# Command line", "Written from the commands themselves."]
    for path, help_text in commands():
        parts.append(f"{'##' if path.count(' ') < 2 else '###'} {path}\n\n```text\n{help_text}\n```")
    return "\n\n".join(parts) + "\n"


def commands() -> Iterator[tuple[str, str]]:
    """Each command and group, as it is typed, with its help."""
    import typer

    from asap.cli.app import app

    def walk(command: Any, parent: Any, name: str) -> Iterator[tuple[str, str]]:
        context = command.context_class(command, info_name=name, parent=parent, terminal_width=WIDTH)
        yield context.command_path, command.get_help(context).rstrip()
        for inner, below in getattr(command, "commands", {}).items():
            yield from walk(below, context, inner)

    yield from walk(typer.main.get_command(app), None, "asap")


def documents_page() -> str:
    """Every JSON document with the fields of its top level, and a link to its JSON schema."""
    from documentation.documents import DOCUMENTS

    parts = [
        "# JSON documents",
        "Each document names its schema and version in the field `schema` (the calibration in `version`). A field that "
        "changes its meaning or goes makes a new version; a new field does not, so ignore fields that you do not know. "
        "The files are JSON Schema, draft 2020-12, written from the pydantic models.",
    ]
    for document in DOCUMENTS:
        parts.append(f"## {document.name}\n\nWritten by {document.written_by}. [JSON schema](schemas/{document.file})")
        parts.append(_table(document.schema, document.schema.get("$defs", {})))
    return "\n\n".join(parts) + "\n"


def settings_page() -> str:
    """The sections of ``asap.toml``, and the environment variables."""
    from pydantic import TypeAdapter

    from asap.agents.settings import Settings
    from asap.ci.source.policy import Policy

    parts = ["# Settings"]
    for heading, text, model in (
        ("[agents]", "In `asap.toml` of the working directory, else in `$ASAP_HOME/config.toml`.", Settings),
        ("[ci]", "In `asap.toml`, or as `[tool.asap.ci]` in `pyproject.toml`, of the base commit.", Policy),
    ):
        schema = TypeAdapter(model).json_schema()
        parts.append(f"## {heading}\n\n{text}")
        parts.append(_table(schema, schema.get("$defs", {})))
        for name, inner in schema.get("$defs", {}).items():
            parts.append(f"### {name}\n\n{_table(inner, schema['$defs'])}")
    rows = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items())
    parts.append(f"## Environment variables\n\n| variable | meaning |\n|---|---|\n{rows}")
    return "\n\n".join(parts) + "\n"


class Number(NamedTuple):
    """A constant of a room, with what its docstring or comment says of it."""

    place: str
    name: str
    value: str
    said: str


def judgements_page() -> str:
    """The constants that have neither a source nor a fit, with what each moves."""
    found = ((one, *re.split(r"[.;] [Jj]udgement: ", one.said, maxsplit=1)) for one in numbers())
    rows = [
        f"| `{one.name}` | `{_cell(one.value)}` | {_cell(said[0])} | {_cell(said[1].rstrip('.'))} | `{one.place}` |"
        for one, *said in found
        if len(said) > 1
    ]
    head = "| constant | value | what it is | what it moves | file of `asap/` |\n|---|---|---|---|---|"
    return "\n\n".join(
        [
            "# Judgements",
            "Numbers that were neither fitted nor taken from a source, in the rooms that predict, weigh, propose and "
            "search. All others name their source where they stand, or come from `scripts/calibrate`.",
            "\n".join([head, *rows]),
        ]
    )


def numbers() -> Iterator[Number]:
    """Every number at the top of a module of :data:`JUDGED`; what says nothing is spoken for by the next below it."""
    for path in (path for room in JUDGED for path in sorted((SCRIPTS.parent / "asap" / room).rglob("*.py"))):
        text = path.read_text(encoding="utf-8")
        lines, body = text.splitlines(), ast.parse(text).body
        found, below, start = [], "", -1
        for node, after in zip(reversed(body), [None, *reversed(body[1:])], strict=True):
            if not isinstance(node, ast.Assign | ast.AnnAssign) or not _has_number(node.value):
                continue
            said = _said(node, after, lines) or (below if start == (node.end_lineno or 0) + 1 else "")
            below, start = said, node.lineno
            name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target).strip("()")
            value = " ".join((ast.get_source_segment(text, node.value) or "").split()) if node.value else ""
            found.append(Number(str(path.relative_to(SCRIPTS.parent / "asap")), name, _short(value), said))
        yield from reversed(found)


def _has_number(value: ast.expr | None) -> bool:
    nodes = list(ast.walk(value)) if value else []
    numeric = any(isinstance(n, ast.Constant) and type(n.value) in (int, float) for n in nodes)
    return numeric and not any(isinstance(n, ast.Lambda) for n in nodes)


def _said(node: ast.stmt, after: ast.stmt | None, lines: list[str]) -> str:
    """The docstring below a constant, else the comment on its lines or above it."""
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return " ".join(after.value.value.split())
    around = [lines[node.lineno - 2], *lines[node.lineno - 1 : node.end_lineno]]
    around[0] = around[0] if around[0].startswith("#") else ""
    comments = [line.partition("# ")[2] for line in around if "# " in line and "# fmt" not in line]
    return " ".join(comments)


def _short(value: str) -> str:
    return value if len(value) <= LONGEST_DEFAULT else f"{value[:LONGEST_DEFAULT]} …"


def _table(schema: dict[str, Any], inner: dict[str, Any]) -> str:
    """The fields of an object, a row each."""
    required = schema.get("required", ())
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in required and "default" not in field else _default(field)
        meaning = field.get("description") or _summary(field, inner)
        rows.append(f"| `{name}` | {_cell(_type(field))} | {default} | {_cell(meaning)} |")
    return "\n".join(rows)


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"])
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "const" in field:
        return json.dumps(field["const"])
    if "enum" in field:
        return " or ".join(json.dumps(value) for value in field["enum"])
    kind = field.get("type", "any")
    if kind == "array":
        return f"array of {_type(field['items'])}" if field.get("items") else "array"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object of {_type(field['additionalProperties'])}"
    return str(kind)


def _summary(field: dict[str, Any], inner: dict[str, Any]) -> str:
    """The first line of what the code says of the type, where the field itself says nothing."""
    options = [field, *field.get("anyOf", ()), field.get("items") or {}]
    named = (option["$ref"].rpartition("/")[2] for option in options if "$ref" in option)
    description = next((inner.get(name, {}).get("description", "") for name in named), "")
    return description.partition("\n\n")[0].replace("\n", " ")


def _default(field: dict[str, Any]) -> str:
    if "default" not in field:
        return ""
    text = json.dumps(field["default"], ensure_ascii=False)
    return f"`{_cell(text)}`" if len(text) <= LONGEST_DEFAULT else "see below"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
