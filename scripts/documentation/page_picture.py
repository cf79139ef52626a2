"""The picture of the report as a page: a bundled run, drawn by Chromium (Debian: chromium and chromium-driver).

python -m documentation.page_picture [EXPERIMENT [FILE]]
"""

import base64
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from documentation.pages import ROOT

PICTURE = ROOT / "docs" / "report.png"
EXPERIMENT = "cpu-8dev"
WIDTH, HEIGHT = 1200, 1720


def draw_page(experiment: str, page: Path) -> None:
    """Write the page of an experiment, in the home that the environment names."""
    from asap.agents.workflow.analyze import analyze
    from asap.cli.analysis.report import write_report
    from asap.experiments import ExperimentStore

    write_report(analyze(experiment, store=ExperimentStore(), session="example").stored, page)
    page.write_text(page.read_text("utf-8").replace(str(ROOT), "…"), "utf-8")


def photograph(page: Path, picture: Path) -> None:
    """The upper part of a page as PNG, light."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver: Any = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.as_uri())
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        picture.write_bytes(base64.b64decode(shot["data"]))
    finally:
        driver.quit()


def main(arguments: list[str]) -> None:
    experiment = arguments[0] if arguments else EXPERIMENT
    with tempfile.TemporaryDirectory() as home:
        os.environ["ASAP_HOME"] = home
        page = Path(home) / "report.html"
        draw_page(experiment, page)
        photograph(page, Path(arguments[1]) if len(arguments) > 1 else PICTURE)


if __name__ == "__main__":
    main(sys.argv[1:])
