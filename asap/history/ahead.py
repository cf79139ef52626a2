"""Write both search indexes in another process, while this one imports and reads.

A machine that has none yet would otherwise wait three seconds for them in its first analysis. Who searches meanwhile
waits for the lock, and then finds them written.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from asap.knowledge.place import SERVER, store_root


@contextmanager
def indexes_written_ahead() -> Iterator[None]:
    """Have the indexes written during the context, if there is no local store; it is stopped where the context ends."""
    if os.environ.get(SERVER) or store_root().exists():
        yield
        return
    silent = subprocess.DEVNULL
    command = [sys.executable, "-P", "-m", "asap.history.ahead"]
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent) as writer:
        try:
            yield
        finally:
            writer.terminate()


def main() -> None:
    """Open both shelves, which writes what is not there."""
    import gc

    from asap.history.shelf import RecordShelf
    from asap.knowledge.shelf import NoteShelf
    from asap.knowledge.store import ask

    gc.disable()
    for shelf in (NoteShelf(), RecordShelf()):
        ask(shelf, lambda index: None)


if __name__ == "__main__":
    main()
