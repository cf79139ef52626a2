"""Chips as data: sources, physical ranges, names, and a user's own files."""

import re
from pathlib import Path

import pytest

from asap.core.errors import NotFoundError
from asap.core.stores import StoreWarning
from asap.hardware import identify_chip, known_chips, load_chip
from tests.cases import cases, kept

EXPECTED = {
    *("v3", "v4", "v5e", "v5p", "v6e", "tpu7x", "v100-16gb", "v100-32gb", "a100-40gb", "a100-80gb"),
    *("h100", "h200", "b200", "gb200", "b300", "gb300", "mi250x", "mi300x", "mi325x", "mi355x"),
    *("a800-80gb", "h800", "h20", "gh200", "a100-64gb", "h100-64gb", "gaudi2", "gaudi3", "trainium1", "trainium2"),
    *("rtx3090", "rtx4090", "rtx5090", "a40", "a10", "a10g", "a6000", "rtx6000-ada", "l40s", "l40", "l4", "t4"),
    *("a100-pcie-40gb", "a100-pcie-80gb", "h100-pcie", "h100-nvl", "v100-pcie-16gb", "v100-pcie-32gb"),
    *("l20", "rtxpro6000", "rtxpro6000-server"),
}
CHIPS = [load_chip(name) for name in sorted(EXPECTED)]
OWN = kept(__file__)["OWN"]


@pytest.fixture
def own_chips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    folder = tmp_path / "chips"
    folder.mkdir()
    return folder


def test_all_chips_are_there() -> None:
    assert set(known_chips()) == EXPECTED


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_every_source_names_a_document_with_its_address(chip) -> None:
    for field, source in chip.sources.items():
        assert re.search(r"\w.*https://\S+", source), f"{field}: {source}"


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_figures_are_in_physical_ranges(chip) -> None:
    assert 5e13 <= max(chip.peak_flops.values()) <= 2e16
    assert 2e11 <= chip.hbm_bandwidth <= 1e13
    assert 30 <= chip.peak_flops.get("bf16", chip.peak_flops.get("fp16", 0)) / chip.hbm_bandwidth <= 1000
    assert 16 * 2**30 <= chip.hbm_bytes <= 400 * 2**30
    assert 15 / 16 * chip.hbm_bytes * 0.999 <= chip.device_capacity * chip.devices <= 1.01 * chip.hbm_bytes
    assert 2**22 <= chip.onchip_bytes <= 2**28
    assert 1e9 <= chip.network.bandwidth <= 2e11
    assert 1e-6 <= chip.network.latency <= 1e-4
    fast = chip.torus.link_bandwidth if chip.torus else chip.scaleup.bandwidth
    assert chip.network.bandwidth < fast < chip.hbm_bandwidth


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_lower_precision_is_not_slower(chip) -> None:
    order = [chip.peak_flops[p] for p in ("fp32", "tf32", "bf16", "fp8", "fp4") if p in chip.peak_flops]
    assert order == sorted(order)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_every_name_leads_to_its_chip_in_any_spelling(chip) -> None:
    for name in (chip.name, chip.title, *chip.aliases):
        for spelling in (name, name.upper(), name.lower(), name.replace(" ", "-"), f"  {name} "):
            assert load_chip(spelling) == chip


@cases("text, name")
def test_names_as_drivers_and_reports_write_them(text: str, name: str) -> None:
    assert load_chip(text).name == name


@pytest.mark.parametrize("name", ["A100", "nvidia a100", "V100", "A100 (DGX-A100)"])
def test_a_name_that_leaves_the_memory_open_is_noted(name: str) -> None:
    assert "assumed" in identify_chip(name).notes[0]
    assert identify_chip("A100 40GB").notes == ()


def test_an_unknown_chip_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(NotFoundError, match=r"unknown chip 'h10'.*h100"):
        load_chip("h10")
    with pytest.raises(NotFoundError, match=r"the nearest are v4"):
        load_chip("v9")
    with pytest.raises(NotFoundError, match=r"known are a10,.*v6e"):
        load_chip("qqq")


def test_a_chip_of_ones_own_is_found_and_goes_before_a_bundled_one(own_chips: Path) -> None:
    (own_chips / "one.toml").write_text(OWN)
    (own_chips / "mine.toml").write_text(OWN.replace("example-1", "h100").replace("E1", "E2"))
    assert (load_chip("e1").name, load_chip("H100").title) == ("example-1", "Example One")
    assert "example-1" in known_chips()


@pytest.mark.parametrize(("text", "complaint"), [
    ("name = ", "is not TOML"), (OWN.replace("hbm_bytes = 6e10", "hbm_bytes = -1"), "hbm_bytes"),
    (OWN.replace("hbm_bytes = 6e10", ""), "hbm_bytes"),
    (OWN.replace('hbm_bytes = "us", ', ""), "no source for hbm_bytes"),
    (OWN.replace('kind = "gpu"', 'kind = "tpu"'), "torus"), (OWN.replace('kind = "gpu"', 'kind = "npu"'), "kind"),
    (OWN + "colour = 1\n", "colour"), ("\xff\xfe\x00", "cannot be read"),
])  # fmt: skip
def test_a_bad_file_is_one_clear_line(own_chips: Path, text: str, complaint: str) -> None:
    (own_chips / "bad.toml").write_bytes(text.encode("latin-1"))
    with pytest.warns(StoreWarning) as caught:
        assert load_chip("v5e").name == "v5e"
    (warning,) = caught
    assert complaint in str(warning.message)
    assert "bad.toml" in str(warning.message)
    assert "\n" not in str(warning.message)
