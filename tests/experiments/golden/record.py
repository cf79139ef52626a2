"""Record the golden readings anew, after a reading was changed on purpose: python -m tests.experiments.golden.record.

It prints what changes; look at each line before you commit the file.
"""

import gzip
import json
import tempfile
from pathlib import Path

from tests.experiments.golden.readings import FILE, cases, outcome


def main() -> None:
    """Read every case, print what parts from the record, and write the file."""
    found = []
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            now = outcome(case, Path(folder).resolve())
        kept = {key: case[key] for key in ("case", "files", "path", "overrides", "experiment", "lines")}
        new = {"lines": kept["lines"]} | now
        if any(case.get(key) != value for key, value in new.items()):
            print(case["case"], case["path"], *case["overrides"])
            print(f"  was {_shown(case)}\n  is  {_shown(new)}")
        found.append(kept | now)
    with gzip.GzipFile(FILE, "wb", mtime=0) as written:
        written.write("".join(f"{json.dumps(case, sort_keys=True)}\n" for case in found).encode())


def _shown(case: dict[str, object]) -> str:
    return json.dumps({key: case[key] for key in ("reads", "refuses", "lines") if key in case}, sort_keys=True)


if __name__ == "__main__":
    main()
