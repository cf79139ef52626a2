import re

from asap.compiler.mapped.failures import Code as CompilerCode
from asap.mapping.language.feedback import Code
from asap.mapping.language.parse import parse
from documentation.generated import GRAMMAR_PAGE, ebnf, published

TEXT = GRAMMAR_PAGE.read_text(encoding="utf-8")


def test_the_published_grammar_is_that_of_the_parser():
    assert published() == ebnf()


def test_every_rule_is_defined_and_none_is_left_of_the_parsers_notation():
    rules = dict(line.split(" ::= ", 1) for line in ebnf().splitlines())
    for body in rules.values():
        bare = re.sub(r'"[^"]*"|\[[^\]]*\]', "", body)
        assert set(re.findall(r"\w+", bare)) <= {*rules, "NEWLINE"}
        assert not re.search(r"->|/|\[|\]", re.sub(r'"[^"]*"|\[[^\]]*\]', "", body))


def test_every_code_is_described():
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", TEXT, re.MULTILINE)) == set(Code) | set(CompilerCode)


def test_every_line_on_the_page_is_a_decision():
    rows = re.findall(r"^\| (`[a-z].*?) \| [a-z]", TEXT, re.MULTILINE)
    found = [span for row in rows for span in re.findall(r"`([a-z][^`]* [^`]*)`", row)]
    assert len(found) > 12
    for line in found:
        assert parse(line)[1] == (), line
