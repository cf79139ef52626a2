import json
import re
from html import unescape

import pytest
from ci_reports import EVIL, configuration, report
from ci_scratch import CONFIG
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from asap.ci.render.comment import LONGEST, MARKER, to_comment
from asap.ci.render.section import fence, prose
from asap.ci.render.workflow import annotations, to_sarif

MENTION = re.compile(r"(?<![\w`])@[A-Za-z0-9]")
REFERENCE_STEP = re.compile(r"#\d")
ADDRESS = re.compile(r"(?i)https?://|www\.[a-z]|[\w.]@[\w.]")


def rendered(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def visible(html: str) -> str:
    """Text outside of code, where GitHub looks for mentions, references and addresses."""
    outside = re.sub(r"(?s)<code.*?</code>|<pre.*?</pre>|<!--.*?-->", "", html)
    return unescape(re.sub(r"<[^>]*>", "", outside))


def tags(html: str) -> set[str]:
    return set(re.findall(r"<([a-zA-Z][a-zA-Z0-9]*)", html))


def assert_harmless(body: str) -> None:
    html = rendered(body)
    assert tags(html) <= {
        *("h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "strong", "em"),
        *("code", "pre", "details", "summary", "sub", "b"),
    }
    text = visible(html)
    assert not MENTION.search(text)
    assert not REFERENCE_STEP.search(text)
    assert not ADDRESS.search(text)
    assert html.count("<!--") == 1
    assert body.startswith(MARKER)


def test_a_comment_says_what_fails_first():
    body = to_comment(report(configuration("configs/b.yml"), configuration("configs/a.yml")))
    assert (
        body.splitlines()[2] == "## ASAP: 2 configurations changed, chip time per token +20.0 %, 1 fails, 1 not checked"
    )
    assert "**Fails**: is slow" in body
    assert body.index("### configs/b.yml") < body.index("configs/a.yml (modified")


def test_what_passes_is_folded_beside_what_fails():
    html = rendered(to_comment(report(configuration("configs/b.yml"), configuration("configs/a.yml"))))
    assert re.search(r"<summary><b>configs/a\.yml ", html)
    assert re.search(r"<h3>configs/b\.yml ", html)
    assert "<h3>configs/a.yml " in rendered(to_comment(report(configuration("configs/a.yml"))))


def test_a_report_without_configurations_says_so():
    said = to_comment(report())
    assert "no changed file is read as a training configuration" in said
    assert "named by `--files` or the policy" in said


@pytest.mark.parametrize("diff", [None, "--- a\n+++ b\n+```\n+@everyone\n+``````\n+</details>\n"])
def test_hostile_texts_stay_texts(diff):
    assert_harmless(to_comment(report(configuration(EVIL[:200], EVIL, diff), text=EVIL)))


def test_a_hostile_run_name_in_a_repository_stays_text(based):
    hostile = CONFIG.replace("llama70", "'@everyone <img src=x> [a](http://e) #1 www.e.com'") + "# @everyone ```\n"
    body = to_comment(based.change(**{"<b>@all [x](y).yml": hostile, "a.yml": hostile + "steps: 1 # ``` @x\n"}))
    assert "everyone" in body
    assert_harmless(body)


@given(st.text(max_size=200))
@example("1. x")
@example("2) x")
@example("- x")
@example("+ x")
@example("---")
@example("_a_ __b__ ![x](y) :smile: https://x.y")
def test_no_text_becomes_markup(text):
    html = rendered(f"- {prose(text)}")
    assert tags(html) <= {"ul", "li"}
    assert not MENTION.search(visible(html).replace("\u200b", "​"))


@given(st.text(alphabet="`~ab\n <", max_size=60))
def test_no_text_closes_its_fence(text):
    html = rendered(fence(text, "diff") + "\n\nafter")
    assert html.count("<pre>") == 1
    assert html.endswith("<p>after</p>\n")


def test_a_long_report_is_shortened_with_a_pointer():
    many = [configuration(f"configs/{number:03}.yml", "x" * 300) for number in range(200)]
    body = to_comment(report(*many))
    assert len(body.encode()) <= LONGEST
    assert "asap-ci.json" in body
    assert body.count("<details>") == body.count("</details>") > 0
    assert "### configs/000.yml" in body


def test_the_longest_texts_that_the_schema_takes_still_fit():
    many = [configuration(f"configs/{number:03}" + "@" * 500, "@" * 400) for number in range(500)]
    assert len(to_comment(report(*many, text="@" * 600)).encode()) <= LONGEST


def test_a_secret_in_a_diff_is_not_posted():
    token = "hf_" + "a" * 30
    body = to_comment(report(configuration(diff=f"--- a\n+++ b\n hf_access_token: {token}\n", text=token)))
    assert token not in body


def test_a_finding_points_to_the_changed_line(repo):
    repo.commit(**{"my configs/a.yml": CONFIG})
    broken = CONFIG.replace("ici_fsdp_parallelism: 256", "ici_fsdp_parallelism: 100")
    result = json.loads(to_sarif(repo.change(**{"my configs/a.yml": broken})))["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("my%20configs/a.yml", 5)
    assert (result["ruleId"], result["level"]) == ("invalid", "error")


def test_every_rule_of_a_result_is_declared():
    run = json.loads(to_sarif(report(configuration())))["runs"][0]
    assert {result["ruleId"] for result in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_an_annotation_is_one_command():
    hostile = EVIL + "%0A::error::x\r\n::set-output name=a::b"
    lines = annotations(report(configuration("a,b:c\n::error::d.yml"), text=hostile), {"GITHUB_ACTIONS": "true"})
    assert len(lines) == 1
    assert lines[0].startswith("::error file=a%2Cb%3Ac %3A%3Aerror%3A%3Ad.yml,line=3,")
    assert not {"\n", "\r"} & set(lines[0])
    assert "%250A" in lines[0]


def test_a_message_has_no_link():
    text = json.loads(to_sarif(report(configuration(), text="[x](1)")))["runs"][0]["results"][0]["message"]["text"]
    assert r"\[x\](1)" in text
