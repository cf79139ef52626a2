"""The JSON documents are contracts: their names, fields and types do not change unnoticed."""

import json
import re

import jsonschema
import pytest

from asap.cli import main
from asap.experiments import ExperimentStore
from documentation.documents import DOCUMENTS, SNAPSHOTS, snapshot
from documentation.pages import ROOT
from tests.cases import kept

INTERNAL = {"asap.compiled/1"}
"""Documents that only ASAP itself reads."""
NAMED = re.compile(r"[\"'](asap\.[a-z_]+/\d+)[\"']")
PRINTED = kept(__file__)["PRINTED"]


@pytest.fixture(scope="module")
def printed(shared_home):
    """What the commands print, in one home and in this order."""
    home = shared_home

    def run(monkeypatch, capsys, name):
        monkeypatch.setenv("ASAP_HOME", str(home))
        monkeypatch.delenv("ASAP_MODEL", raising=False)
        if name == "asap.memory/1" and not (home / "sessions" / "contract.jsonl").exists():
            _main(monkeypatch, PRINTED["asap.analysis/3"])
            capsys.readouterr()
        _main(monkeypatch, PRINTED[name])
        return json.loads(capsys.readouterr().out)

    return run


def _main(monkeypatch, arguments):
    monkeypatch.setattr("sys.argv", ["asap", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (0, None)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_contract_of_a_document_is_as_it_was(document):
    kept = SNAPSHOTS / document.file
    assert kept.is_file(), f"{document.name} is new: scripts/docs update keeps its schema"
    assert kept.read_text(encoding="utf-8") == snapshot(document), (
        "a field that goes or changes makes a new version; then, and for a new field, run scripts/docs update"
    )


def test_every_contract_that_is_kept_is_still_written():
    assert {path.name for path in SNAPSHOTS.glob("*.json")} == {document.file for document in DOCUMENTS}


def test_every_document_of_the_code_has_a_contract():
    sources = (ROOT / "asap").rglob("*.py")
    named = {name for source in sources for name in NAMED.findall(source.read_text(encoding="utf-8"))}
    assert named - INTERNAL == {document.name for document in DOCUMENTS}


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_keeps_the_contract(printed, monkeypatch, capsys, name):
    (document,) = (document for document in DOCUMENTS if document.name == name)
    contract = json.loads((SNAPSHOTS / document.file).read_text(encoding="utf-8"))
    found = printed(monkeypatch, capsys, name)
    assert found["schema"] == name
    jsonschema.validate(found, contract, cls=jsonschema.Draft202012Validator)


def test_experiments_that_are_bundled_keep_the_contract():
    (document,) = (document for document in DOCUMENTS if document.name == "asap.experiment/1")
    for experiment in ExperimentStore().list().experiments:
        jsonschema.validate(experiment.model_dump(mode="json", by_alias=True), dict(document.schema))
