"""Build both search indexes in another process, while this one imports and reads.

Without it the first analysis on a machine waits three seconds for them. A search in the meantime waits for the lock
and then finds them built.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from asap.knowledge.paths import SERVER, store_folder


@contextmanager
def warm_up_indexes() -> Iterator[None]:
    """Build the indexes during the context if there is no local store; stopped at its end."""
    if os.environ.get(SERVER) or os.path.lexists(store_folder()):
        yield
        return
    silent = subprocess.DEVNULL
    command = [sys.executable, "-P", "-m", "asap.history.index_warmup"]
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent) as writer:
        try:
            yield
        finally:
            writer.terminate()


def main() -> None:
    """Open both corpora, which builds missing indexes."""
    from asap.history.files import RecordCorpus
    from asap.knowledge.notes.corpus import NoteCorpus
    from asap.knowledge.store.access import query_index

    for corpus in (NoteCorpus(), RecordCorpus()):
        query_index(corpus, lambda index: None)


if __name__ == "__main__":
    gc.disable()
    main()
