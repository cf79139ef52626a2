import json
from pathlib import Path

import pytest

from tests.cases import cases

PROGRAM = "# one slice\nmesh data=4   model=4\nshard key, value by heads over none in layers 0..3\nremat full\n"
ON = ("--model", "llama2-70b", "--hardware", "v5e:4x4")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.map"
    path.write_text(PROGRAM)
    return path


def test_a_program_that_is_right(asap, file):
    done = asap("map", "check", str(file), *ON)
    assert (done.code, done.out, done.err) == (0, "3 decisions, nothing wrong\n", "")


def test_what_is_wrong_has_a_place_and_can_be_repaired(asap, file):
    file.write_text("mesh data=8 model=4\nremat fulll\n")
    done = asap("map", "check", str(file), *ON, "--repair")
    assert done.code == 4
    assert f"{file}:1:1: MESH_PRODUCT: " in done.out
    assert f"{file}:2:7: SYNTAX: fulll is not expected here; did you mean full?" in done.out
    assert file.read_text() == "mesh data=4 model=4\nremat full\n"


def test_a_check_as_json(asap, file):
    file.write_text("mesh data=16\norder f(i, j) = i")
    found = json.loads(asap("map", "check", str(file), *ON, "--format", "json").out)
    assert found["schema"] == "asap.mapping/1"
    assert not found["valid"]
    assert found["feedback"][0]["code"] == "NOT_A_PERMUTATION"
    assert found["feedback"][0]["repair"] == {"line": 2, "column": 1, "end_column": 18, "text": "order row"}


def test_format_is_printed_or_written(asap, file):
    text = PROGRAM.replace("   ", " ")
    assert asap("map", "format", str(file)).out == text
    assert asap("map", "format", str(file), "--write").out == ""
    assert file.read_text() == text


def test_explain_shows_each_tensor_and_the_line_that_decides(asap, file):
    found = json.loads(asap("map", "explain", str(file), *ON, "--format", "json").out)
    key = {row["layers"]: row for row in found["parameters"] if row["tensor"] == "key"}
    assert key["0..3"]["axes"] == [["data"], [], []]
    assert key["0..3"]["lines"] == [None, 3, None]
    assert key["4..79"]["share"] == "1/16"
    assert "kv_heads" in found["maxtext_refusal"]
    done = asap("map", "explain", str(file), *ON)
    assert "dimension heads of key, value is whole on every device in layers 0 to 3" in done.out
    assert "MaxText cannot say this" in done.err


def test_explain_says_what_a_device_keeps(asap, file):
    file.write_text("mesh data=4 model=4\nplace optimizer on pinned_host\ndtype head bf16\n")
    found = json.loads(asap("map", "explain", str(file), *ON, "--format", "json").out)
    kept = {row["tensor"]: row for row in found["kept"]}
    assert kept["head"]["hbm_bytes"] == 8192 * 32000 * 2 / 16
    assert kept["query"]["host_bytes"] == 2 * 80 * 8192 * 8192 * 4 / 16
    words = "Parameters and Adam moments on a device: 16.0 GiB of HBM (gate 4.38 GiB, up 4.38 GiB, down 4.38 GiB), and "
    assert words in asap("map", "explain", str(file), *ON).out


def test_explain_predicts_the_step_of_an_experiment(asap, file):
    file.write_text("mesh data=16\nremat full\nshard head by embed over none\norder col\n")
    config = Path(__file__).parents[2] / "tests/data/search/dense.yml"
    assert asap("experiments", "add", "mine", "--config", str(config), "--hardware", "v5e:4x4").code == 0
    done = asap("map", "explain", str(file), "--experiment", "mine")
    assert "\nPredicted: " in done.out
    assert "\nhead split otherwise than under the plan: +" in done.out
    assert "\nNot predicted is what these lines do to the step: order.\n" in done.out
    assert "Predicted" not in asap("map", "explain", str(file), *ON).out  # batch and sequence are not known


def test_explain_writes_the_rules_for_maxtext(asap, file):
    file.write_text("mesh data=4 model=4\nshard embedding, head by embed over none\n")
    assert "logical_axis_rules=[['embed_vocab', []]]" in asap("map", "explain", str(file), *ON).out


def test_the_space_counts_what_is_valid(asap, file):
    found = json.loads(asap("map", "space", str(file), *ON, "--format", "json").out)
    key = next(row for row in found["choices"] if row["decision"] == "shard key")
    assert (key["times"], key["options"], key["valid"]) == (80, 16, 8)
    assert found["valid_log10"] < found["options_log10"]
    assert asap("map", "space", str(file)).code == 5


def test_the_plan_of_an_experiment_is_a_program(asap, tmp_path):
    assert asap("map", "write", "paper-v5p-512").out == "mesh data=8 seq=8 model=8\n"
    other = asap("map", "write", "cpu-8dev", "--plan", "data=8 remat=minimal")
    assert other.out.startswith("mesh data=8\nremat minimal\n")
    path = tmp_path / "written.map"
    path.write_text(other.out)
    assert asap("map", "check", str(path), "--experiment", "cpu-8dev").code == 0


@cases("arguments, code, reason")
def test_one_line_says_what_is_wrong(asap, file, arguments, code, reason):
    done = asap("map", *(str(file) if each == "FILE" else each for each in arguments))
    assert done.code == code
    assert reason in done.err
    assert len(done.err.splitlines()) == 1


def test_a_file_beyond_the_limit_is_called_no_mapping_program(asap, file):
    file.write_text("#" * 1_000_001)
    done = asap("map", "check", str(file), *ON)
    assert (done.code, done.out) == (4, "")
    assert done.err == f"asap: {file}: is larger than 1,000,000 bytes: not a mapping program\n"
