"""An index in memory, where the folder of the store cannot be used: nothing is kept, and a search finds the same."""

import numpy as np

from asap.knowledge.document import Corpus
from asap.knowledge.index.embedding import Embedder
from asap.knowledge.index.hybrid import Index
from asap.knowledge.index.lexical import LexicalIndex
from asap.knowledge.index.matrix import Matrix


def open_in_memory(corpus: Corpus, embedder: Embedder) -> Index:
    """The index of a corpus as it is now."""
    documents, fingerprint = corpus.documents(), corpus.fingerprint()
    vectors = np.asarray(embedder.embed_documents(documents), dtype=np.float32)
    matrix = Matrix([document.key for document in documents], vectors)
    lexical = LexicalIndex.in_memory(documents, fingerprint)
    return Index(lexical, matrix.nearest, embedder, fingerprint, lambda wanted: wanted == fingerprint, lambda: None)
