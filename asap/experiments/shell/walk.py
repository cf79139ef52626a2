"""The way through a script: what it sets as it goes, the branches that it takes, and the commands that it comes to."""

import re
from enum import Enum

from tree_sitter import Node

from asap.core.errors import UnreadError
from asap.experiments.shell.scope import EVALUATED, Command, Variables
from asap.experiments.shell.syntax import Script, branches
from asap.experiments.shell.variables import LONGEST, expand, has_substitution, holds, slurm_variables
from asap.experiments.shell.words import unquoted

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.ASCII | re.DOTALL)
_DEFAULT = re.compile(r":\s+\"?\$\{([A-Za-z_]\w*):?=(.*?)\}\"?", re.ASCII | re.DOTALL)
_DIRECTIVE = re.compile(r"#SBATCH\s+(.*?)\s*(?:\s#.*)?")
_DECLARING = frozenset(("export", "readonly", "local", "declare", "typeset"))
_SILENT = frozenset(("echo", "printf", "unset", "shift", "set"))
_PRINTS = re.compile(r"\$\([^()]{0,500}?\s[\"']?--[a-z][^()]{0,500}\)")
"""What prints options, which only a run can tell."""
_OUTCOMES = {"true": True, ":": True, "false": False}
_MOST_LEVELS, _OF_CALL = 150, 1_000
_ARGUMENTS = "123456789#@"


class _Ran(Enum):
    """A command was run, and only a run can tell whether it succeeded."""

    RAN = "ran"


_Outcome = bool | None | _Ran  # whether a test holds, ``None`` where the script does not tell


class Walk:
    """A script that is followed from its first line to its last."""

    def __init__(self, text: str, variables: Variables) -> None:
        self._script = Script(text)
        self._variables = variables
        self._level = 0
        self._functions: dict[str, Node] = {}
        self._called: set[str] = set()
        self.commands: list[Command] = []
        self._block(self._script.root, True)
        for name in [*self._functions]:  # what calls them may not be followed
            if name not in self._called:
                self._statement(self._functions[name], True)

    def _block(self, node: Node, certain: bool) -> _Outcome:
        """Statements one after the other; the outcome is that of the last."""
        outcome: _Outcome = True
        for child in node.named_children:
            outcome = self._statement(child, certain)
        return outcome

    def _statement(self, node: Node, certain: bool) -> _Outcome:
        self._level += 1
        if self._level > _MOST_LEVELS:
            raise UnreadError(f"has statements within each other more than {_MOST_LEVELS} deep")
        outcome = self._outcome(node, certain)
        self._level -= 1
        return outcome

    def _outcome(self, node: Node, certain: bool) -> _Outcome:
        kind = node.type
        if kind in ("command", "declaration_command", "variable_assignment", "variable_assignments", "unset_command"):
            return self._simple(node, certain)
        if kind == "redirected_statement":
            return self._redirected(node, certain)
        if kind == "comment":
            self._directive(node)
        elif kind == "list":
            return self._list(node, certain)
        elif kind == "negated_command":
            outcome = self._block(node, certain)
            return not outcome if isinstance(outcome, bool) else outcome
        elif kind == "test_command" or (kind == "compound_statement" and self._text(node).startswith("((")):
            return holds(self._script.written(node), self._variables.values)
        elif kind == "if_statement":
            self._if(node, certain)
        elif kind in ("while_statement", "for_statement", "c_style_for_statement"):
            self._loop(node, certain)
        elif kind == "case_statement":
            self._case(node)
        elif kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            self._functions |= {self._text(name): body} if name is not None and body is not None else {}
        elif kind == "ERROR":
            self._block(node, False)
        elif kind in ("compound_statement", "subshell", "do_group", "else_clause", "pipeline", "program"):
            return self._block(node, certain)
        return _Ran.RAN

    def _list(self, node: Node, certain: bool) -> _Outcome:
        """``a && b`` or ``a || b``: the second is run where the first decides it, and may be where it does not."""
        left, right = node.named_children[0], node.named_children[-1]
        wanted = any(child.type == "&&" for child in node.children)
        outcome = self._statement(left, certain)
        if outcome is _Ran.RAN:
            self._statement(right, certain and wanted)
            return outcome
        if outcome is (not wanted):
            return outcome
        found = self._statement(right, certain and outcome is not None)
        return None if outcome is None else found

    def _if(self, node: Node, certain: bool) -> None:
        before: bool | None = False
        for test, body in branches(node):
            outcome: _Outcome = True
            for part in test:
                outcome = self._statement(part, certain and before is False)
            now = None if outcome is _Ran.RAN else outcome
            if before is not True and now is not False:
                for statement in body:
                    self._statement(statement, certain and before is False and now is True)
            before = True if True in (before, now) else None if None in (before, now) else False

    def _loop(self, node: Node, certain: bool) -> None:
        """A loop is gone through once, unless it is known that it is not."""
        body = node.child_by_field_name("body")
        name = node.child_by_field_name("variable")
        if name is not None:
            self._variables.set({self._text(name): None})
        if node.type == "while_statement":
            condition = node.child_by_field_name("condition")
            outcome = self._statement(condition, certain) if condition is not None else None
            if outcome is (node.children[0].type == "until"):
                return
        if body is not None:
            self._statement(body, certain)

    def _case(self, node: Node) -> None:
        """Of its arms only a run can tell which is taken."""
        for item in (child for child in node.named_children if child.type == "case_item"):
            for statement in item.named_children[len(item.children_by_field_name("value")) :]:
                self._statement(statement, False)

    def _redirected(self, node: Node, certain: bool) -> _Outcome:
        body = node.child_by_field_name("body")
        redirects = list(node.children_by_field_name("redirect"))
        documents = [child for child in redirects if child.type == "heredoc_redirect"]
        if body is None or body.type not in ("command", "declaration_command", "variable_assignment"):
            return self._statement(body, certain) if body is not None else _Ran.RAN
        end = min((inner.start_byte for each in documents for inner in each.children if inner.type == "heredoc_body"),
                  default=node.end_byte)  # fmt: skip
        document = self._script.document(documents[0]) if documents else ""
        return self._simple(node, certain, end, document)

    def _directive(self, node: Node) -> None:
        if found := _DIRECTIVE.fullmatch(self._text(node)):
            written = f"sbatch {found[1]}"
            self._variables.set(slurm_variables(written.split(), self._variables.values))
            self._add(self._expanded(written), written, self._line(node), True)

    def _simple(self, node: Node, certain: bool, end: int | None = None, document: str = "") -> _Outcome:
        written = self._script.written(node, end).strip()
        written = written if len(written) <= LONGEST else ""
        for printed in _PRINTS.finditer(written):
            line = self._line(node) + written.count("\n", 0, printed.start())
            self._add(printed[0], printed[0], line, False)
        written = _PRINTS.sub("", written)
        said = self._words(node)
        if not said:
            return _Ran.RAN
        variables, line = self._variables, self._line(node)
        name = said[0]
        if name in _SILENT:
            if ">" in written:
                self._add(self._expanded(written), written, line, certain)
            return _Ran.RAN
        if default := _DEFAULT.fullmatch(written):
            if not variables.values.get(default[1], ""):
                variables.assign(default[1], self._expanded(unquoted(default[2])), False, certain)
            return _Ran.RAN
        if name in _OUTCOMES:
            return _OUTCOMES[name]
        if name in self._functions:
            return self._call(said, certain)
        if name in ("read", "mapfile", "readarray"):
            variables.set(dict.fromkeys(filter(str.isidentifier, said[1:])))
        if name == EVALUATED:
            self._add(name, self._expanded(written), line, certain)
            return _Ran.RAN
        if name == "sbatch":
            variables.set(slurm_variables(said, variables.values))
        assigned = [word for word in said[1:] if not word.startswith("-")] if name in _DECLARING else said
        found = [_ASSIGNMENT.fullmatch(word) for word in assigned]
        if name not in _DECLARING and not all(found):
            self._add(self._expanded(written), written, line, certain, document=self._expanded(document))
            return _Ran.RAN
        expanded = self._expanded(written)
        for word, assignment in zip(assigned, found, strict=True):
            self._assign(name, word, assignment, certain)
        self._add(expanded, written, line, certain, assigns=True)
        return True

    def _words(self, node: Node) -> list[str]:
        """The words of a command as they are written, without what prints options."""
        node = (node.child_by_field_name("body") or node) if node.type == "redirected_statement" else node
        parts = [node] if node.type == "variable_assignment" else node.children
        found, end = list[str](), -1
        for part in parts:
            if part.type == "comment" or part.type.endswith("redirect"):
                continue
            text = _PRINTS.sub("", self._script.written(part))
            found += [found.pop() + text if part.start_byte == end else text]  # the grammar ends words too early
            end = part.end_byte
        return [*filter(None, found)]

    def _assign(self, by: str, word: str, assignment: re.Match[str] | None, certain: bool) -> None:
        variables, name = self._variables, assignment[1] if assignment else word
        if assignment:
            value = self._expanded(_value(assignment[3]))
            variables.assign(name, value, bool(assignment[2]), certain)
            if by == "readonly" and not has_substitution(value):
                variables.fixed.setdefault(name, value)
        if by == "export" and not has_substitution(name):
            variables.export(name)

    def _call(self, said: list[str], certain: bool) -> _Outcome:
        """A function, whose arguments stay open unless they are those of the script."""
        self._variables.spend(_OF_CALL)
        self._called.add(said[0])
        body, values = self._functions.pop(said[0]), self._variables.values
        before = {key: values[key] for key in _ARGUMENTS if key in values}
        self._variables.set({} if said[1:] == ['"$@"'] else dict.fromkeys(_ARGUMENTS))
        outcome = self._statement(body, certain)
        self._variables.values = {key: value for key, value in self._variables.values.items() if key not in _ARGUMENTS}
        self._variables.set(before)
        self._functions[said[0]] = body
        return outcome

    def _add(
        self, text: str, written: str, line: int, certain: bool, assigns: bool = False, document: str = ""
    ) -> None:
        self._variables.spend(len(text))
        self.commands.append(Command(text, written, line, certain, self._variables.scope(), assigns, document))

    def _expanded(self, text: str) -> str:
        return expand(text, self._variables.values)

    def _text(self, node: Node) -> str:
        return self._script.slice(node.start_byte, node.end_byte)

    def _line(self, node: Node) -> int:
        return node.start_point[0] + 1


def _value(written: str) -> str:
    """The text of a value; words of an array keep their quotes, with a space before them to append to others."""
    if written.startswith("(") and written.endswith(")"):
        return f" {written[1:-1]}"
    return unquoted(written)
