"""The real client against a local server that speaks the Gemini API."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import numpy as np
import pytest

from asap.core.errors import ServiceError, UsageError
from asap.knowledge import search_knowledge
from asap.knowledge.index.embedders import GEMINI_DIMENSION
from asap.knowledge.store.access import _close_all


class Api(BaseHTTPRequestHandler):
    status, dimension = 200, GEMINI_DIMENSION
    texts: ClassVar[list[str]] = []

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        requests = asked.get("requests", [asked])
        texts = ["".join(part["text"] for part in request["content"]["parts"]) for request in requests]
        self.texts.extend(texts)
        vectors = [{"values": self.vector(text)} for text in texts]
        answer = {"embeddings": vectors} if self.status == 200 else {"error": {"code": 429, "message": "no quota"}}
        body = json.dumps(answer).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def vector(self, text):
        seeds = (int(hashlib.sha256(word.encode()).hexdigest()[:8], 16) for word in text.lower().split())
        return sum(np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds).tolist()

    def log_message(self, *_):
        pass


@pytest.fixture
def api(monkeypatch, few_notes):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GOOGLE_API_KEY", "AIzaSyTestTestTestTestTestTestTestTestTe")
    monkeypatch.setenv("ASAP_EMBEDDER", "gemini-embedding-001")
    Api.status, Api.dimension, Api.texts = 200, GEMINI_DIMENSION, []
    yield Api
    _close_all()
    server.shutdown()


def test_gemini_vectors_live_in_a_collection_of_their_own(api, monkeypatch, home):
    own = search_knowledge("critical batch size of FSDP", 3)
    asked = len(api.texts)
    monkeypatch.delenv("ASAP_EMBEDDER")
    search_knowledge("critical batch size of FSDP", 3)
    assert len(api.texts) == asked
    monkeypatch.setenv("ASAP_EMBEDDER", "gemini-embedding-001")
    assert search_knowledge("critical batch size of FSDP", 3) == own
    assert len(api.texts) == asked + 1
    folder = home / "chroma" / (home / "chroma" / "current").read_text()
    names = json.loads((folder / "manifest.json").read_text())["collections"].keys()
    assert {name.split("-")[1] for name in names} == {"gemini", "lsa1"}


@pytest.mark.parametrize(
    ("status", "dimension", "complaint"), [(429, GEMINI_DIMENSION, "no quota"), (200, 3, "another shape")]
)
def test_a_service_that_refuses_is_one_sentence_without_the_key(api, status, dimension, complaint):
    api.status, api.dimension = status, dimension
    with pytest.raises(ServiceError, match=complaint) as refused:
        search_knowledge("FSDP")
    assert "AIza" not in str(refused.value)


def test_without_a_key_it_is_a_usage_error(monkeypatch, few_notes):
    monkeypatch.setenv("ASAP_EMBEDDER", "gemini-embedding-001")
    with pytest.raises(UsageError, match="need a key"):
        search_knowledge("FSDP")
