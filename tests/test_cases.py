from tests.cases import CASES, of_room


def test_all_that_is_kept_belongs_to_a_module_that_names_it():
    for file in CASES.glob("*.yaml"):
        for module, names in of_room(file.stem).items():
            text = (CASES.parents[1] / file.stem / f"{module}.py").read_text(encoding="utf-8")
            assert [name for name in names if name not in text] == [], module
