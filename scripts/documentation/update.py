"""Write what depends on the code into the repository: outputs under the commands of pages, JSON schemas, the picture.

python -m documentation.update [PAGE …]
"""

import os
import sys
import tempfile
from pathlib import Path

from documentation import generated
from documentation.documents import write_snapshots
from documentation.generated import PICTURE, draw
from documentation.generated import update_page as update_grammar
from documentation.pages import commands, folder, insert_outputs, pages, run_page


def main(named: list[Path]) -> None:
    write_snapshots()
    update_grammar()
    generated.COMMANDS_PAGE.write_text(generated.commands_page(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as home:
        os.environ["ASAP_HOME"] = home
        PICTURE.write_text(draw(), encoding="utf-8")
    for page in named or pages():
        update(page)


def update(page: Path) -> None:
    """Show under each command what it prints now, as far as the page shows anything under it."""
    text = page.read_text(encoding="utf-8")
    found = commands(text)
    if not any(command.shown for command in found):
        return
    with tempfile.TemporaryDirectory() as workplace:
        outputs: dict[int, tuple[str, ...]] = {}
        for command, code, printed in run_page(found, folder(text), Path(workplace)):
            if code:
                sys.exit(f"{page}:{command.line}: {command.text} exits with {code}:\n{printed}")
            outputs[command.line] = command.updated(printed)
    page.write_text(insert_outputs(text, outputs), encoding="utf-8")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
