import json

from ci_reports import EVIL, configuration, report
from ci_scratch import CONFIG

from asap.ci.render.workflow import annotations, to_sarif


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
