import html
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from asap.experiments import Experiment, ExperimentStore
from asap.hardware import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.validity import Constraints
from asap.profiles import Kpis, Operation, Profile, Roofline
from asap.proposals import Citation
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.reports.analysis import assemble
from asap.reports.html import render_page
from asap.reports.html.charts.plans import pareto_front
from asap.study.open_study import open_study
from asap.study.study import Study, study_of
from tests.cases import cases

pytest.importorskip("vl_convert")

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&{{7*7}}\u202e\x1b[2J"
LOG = [(0, datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "tool_call", f"health({HOSTILE})")]


class Tags(HTMLParser):
    """The tags of a page and their attributes."""

    def __init__(self, text):
        super().__init__()
        self.names, self.attributes = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]


def page_of(study, log=()):
    note = Citation(kind="principle", id="a-note", title=HOSTILE, url="javascript:alert(1)", supports=HOSTILE)
    proposals = propose(rank_candidates(study, priors={}), lambda study, plan: (note,))
    return render_page(assemble(study, proposals, "a-session", "builtin/planner"), study, log)


def operation(number, **facts):
    share = 1 / (number + 2)
    defaults = {
        "name": f"fusion.{number}", "category": "loop fusion", "fraction": share, "time_s": share, "flops": 1e9,
        "flop_rate": 1e12 * share, "bytes_accessed": 1e7, "bound": "hbm", "shape": "f32[8,128]",
    }  # fmt: skip
    return Operation(**defaults | facts)


@pytest.fixture(scope="module")
def hostile():
    operations = (
        operation(0, name=HOSTILE, category=HOSTILE, shape=HOSTILE, source=HOSTILE),
        operation(1, collective="all-reduce", bound="unknown"),
    )
    roofline = Roofline(peak_flop_rate=1e14, peak_hbm_bandwidth=1e12)
    profile = Profile(
        source=HOSTILE, operations=operations, kpis=Kpis(step_time_s=1.0), roofline=roofline, warnings=(HOSTILE,)
    )
    experiment = Experiment(id="x", description=HOSTILE, plan=Plan.parse("data=8"), notes=(HOSTILE,))
    study = Study(experiment, profile, None, Constraints(devices_per_slice=8, slices=1), (HOSTILE,))
    return page_of(study, LOG)


@pytest.fixture(scope="module")
def known():
    model = Architecture(
        name="a", layers=16, d_model=2048, d_ff=8192, heads=16, kv_heads=8, head_dim=128, vocab=32000, gated_mlp=True
    )
    hardware = {"name": "v5e-64"}
    experiment = Experiment(
        id="known", model=model, plan=Plan.parse("data=16 model=4 remat=full"), hardware=hardware,
        workload=Workload(global_batch=128, sequence_length=4096),
    )  # fmt: skip
    assert resolve_hardware("v5e-64").slice.topology == (8, 8)
    return page_of(study_of(experiment))


def test_what_files_say_never_becomes_markup(hostile):
    assert "<img" not in hostile
    assert "javascript:" not in hostile
    assert "{{7*7}}" in hostile
    assert "\u202e" not in hostile
    assert "\x1b" not in hostile
    assert html.escape("</script>") in hostile
    assert hostile.count("</script>") == hostile.count("<script")


def test_the_policy_allows_this_script_and_this_style_and_nothing_else(hostile):
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', hostile)[1])
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    tags = Tags(hostile)
    assert not [name for _, name, _ in tags.attributes if name.startswith("on") or name == "style"]
    links = [value for _, name, value in tags.attributes if name in ("href", "src", "xlink:href")]
    assert links
    assert all(link.startswith(("#", "https://")) for link in links)
    assert tags.names.isdisjoint({"img", "link", "iframe", "object", "form"})


def test_all_sections_are_there_where_all_is_known(known):
    for section in ("verdict", "composition", "proposals", "plans", "memory", "mesh", "evidence"):
        assert f'id="{section}"' in known
    assert "Y, line of 8" in known
    assert "Pareto front" in known
    assert "modelled" in known


def test_every_chart_says_in_words_and_as_a_table_what_it_draws(hostile):
    charts = re.findall(r'<section id="(composition|roofline|plans)">.*?</section>', hostile, flags=re.S)
    assert charts == ["composition", "plans", "roofline"]
    for name in charts:
        section = re.search(rf'<section id="{name}">.*?</section>', hostile, flags=re.S)[0]
        assert f'id="{name}-text"' in section
        assert "<table>" in section
        assert "aria-label=" in section


def test_proposals_with_levers_are_among_the_plans_that_are_drawn(tmp_path):
    page = page_of(open_study("llama-8b-tensor-16", ExperimentStore(tmp_path)))
    section = re.search(r'<section id="plans">.*?</section>', page, flags=re.S)[0]
    for rank in (1, 2):
        assert f"proposal {rank};" in section
    assert re.search(r"\d\d,\d{3} plans\.", section)
    assert "Expected bottleneck: <em>compute</em>" in page


@cases("experiment, words")
def test_a_bundled_run_has_a_report_of_what_holds_it_back(tmp_path, experiment, words):
    page = page_of(open_study(experiment, ExperimentStore(tmp_path)), LOG)
    assert [each for each in words if each not in page] == []


def test_copies_with_the_host_are_drawn():
    copies = (
        operation(0, name="copy-done.1", category="copy-done", fraction=0.8, host_copy=True),
        operation(1, name="all-gather.1", category="all-gather", fraction=0.1, collective="all-gather"),
    )
    profile = Profile(source="x", operations=copies, kpis=Kpis(step_time_s=1.0, communication=0.1))
    study = Study(
        Experiment(id="x", plan=Plan.parse("data=8")), profile, None, Constraints(devices_per_slice=8, slices=1)
    )
    assert "copies with the host" in page_of(study)


def luminance(colour):
    """As WCAG 2.2 defines it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_the_contrast_of_wcag_aa(hostile, theme):
    colours = {
        name: pair[theme] for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", hostile)
    }
    surfaces, outlined = {"page", "card", "grid"}, {"idle", "unlisted"}
    for text in ("ink", "quiet", "accent", "bad"):
        assert min(contrast(colours[text], colours["page"]), contrast(colours[text], colours["card"])) >= 4.5, text
    for mark in colours.keys() - surfaces - outlined:
        assert contrast(colours[mark], colours["card"]) >= 3, mark


def test_twenty_thousand_operations_fit_into_five_megabytes():
    operations = tuple(
        operation(n, name=f"%fusion.{n}.clone.remat", source=f"model/layers/block_{n}.py:{n}") for n in range(20_000)
    )
    gathers = operation(0, name="all-gather.1", category="all-gather", collective="all-gather")
    profile = Profile(source="p", operations=(gathers, *operations[1:]), kpis=Kpis(step_time_s=1.0, communication=0.1))
    experiment = Experiment(id="large", plan=Plan.parse("data=8"))
    page = page_of(Study(experiment, profile, None, Constraints(devices_per_slice=8, slices=1)))
    rows = json.loads(re.search(r'id="operation-rows">(.*?)</script>', page, flags=re.S)[1])
    assert len(page.encode()) < 5_000_000
    assert len(rows) == 20_000 or "more operations" in page
    assert page.count("<tr>") < 500


def test_the_pareto_front_has_what_nothing_beats():
    assert pareto_front([(1, 5), (2, 3), (3, 4), (2, 6), (4, 1)]) == {(1, 5), (2, 3), (4, 1)}
