"""The report in a real browser: Debian's chromium and chromium-driver, or whatever the PATH has of them."""

import shutil

import pytest

from asap.profiles import Kpis, Operation, Profile, Roofline
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.reports.analysis import assemble
from asap.reports.html import render_page
from asap.study.study import study_of
from tests.cases import kept
from tests.studies import study as run

webdriver = pytest.importorskip("selenium.webdriver")
pytest.importorskip("vl_convert")
BROWSER, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromium with chromedriver on this machine"),
]


def operations():
    yield Operation(
        name="fusion.1</script><b>", category="fusion", fraction=0.5, time_s=5.0, flops=1e12, flop_rate=2e12,
        bytes_accessed=1e9, bound="compute", roofline_efficiency=0.8,
    )  # fmt: skip
    for n in range(2000):
        yield Operation(name=f"copy.{n}", category="copy", fraction=1e-4, time_s=1e-3, bound="hbm")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    profile = Profile(
        source="a profile", operations=tuple(operations()), kpis=Kpis(step_time_s=10.0),
        roofline=Roofline(peak_flop_rate=1e14, peak_hbm_bandwidth=1e12),
    )  # fmt: skip
    study = study_of(run("data=16 model=16 microbatches=1 remat=full").experiment, profile)
    proposals = propose(rank_candidates(study, priors={}), lambda study, plan: ())
    page = tmp_path_factory.mktemp("page") / "report.html"
    page.write_text(render_page(assemble(study, proposals, "s", "builtin/planner"), study), encoding="utf-8")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--force-prefers-reduced-motion", "--window-size=1200,900",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.get(page.as_uri())
    yield driver
    driver.quit()


def find(browser, selector):
    return browser.find_element("css selector", selector)


def column(browser, number):
    script = (
        "return [...document.querySelectorAll('#operation-table tbody tr')].map(r => r.cells[arguments[0]].textContent)"
    )
    return browser.execute_script(script, number)


def test_it_opens_without_a_word_of_complaint(browser):
    assert browser.title.startswith("run:")
    assert browser.get_log("browser") == []


def test_hovering_over_a_point_says_what_it_is(browser):
    point = find(browser, "#roofline [aria-roledescription='point']")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", point)
    webdriver.ActionChains(browser).move_to_element(point).perform()
    told = find(browser, "#tip").text
    assert "fusion.1</script><b>" in told
    assert "80.0 % of the roofline" in told


def test_the_keyboard_steps_through_the_marks(browser):
    drawing = find(browser, "#composition .drawing")
    drawing.send_keys("\ue014")  # arrow right
    first = find(browser, "#tip").text
    drawing.send_keys("\ue014")
    assert first
    assert find(browser, "#tip").text not in ("", first)
    drawing.send_keys("\ue00c")  # escape
    assert find(browser, "#tip").text == ""


def test_operations_are_sorted_searched_and_extended(browser):
    assert column(browser, 0)[0] == "fusion.1</script><b>"
    assert len(column(browser, 0)) == 100
    name = find(browser, "#operation-table thead th button")
    browser.execute_script("arguments[0].click()", name)
    assert column(browser, 0)[:2] == ["copy.0", "copy.1"]
    search = find(browser, "#search")
    search.send_keys("copy.19")
    assert find(browser, "#count").text.startswith("111 operations")
    browser.execute_script("document.getElementById('more').click()")
    assert len(column(browser, 0)) == 111
    search.clear()
    search.send_keys("nothing like this")
    assert column(browser, 0) == []


def test_dark_and_light_differ(browser):
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = browser.execute_script(colour)
    find(browser, "#theme").click()
    assert browser.execute_script(colour) != before


@pytest.mark.parametrize("width", [500, 1200])
def test_nothing_is_cut_without_a_scroll_bar(browser, width):
    browser.set_window_size(width, 900)
    assert browser.execute_script(kept(__file__)["CUT"]) == []
