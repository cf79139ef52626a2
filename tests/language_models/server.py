"""A local server that speaks the protocols of language models. A script says what it answers.

A script gets a :class:`Question` and returns tool calls, text or a :class:`Reply` with any status and body.
"""

import json
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from threading import Thread
from typing import Any

from tests.language_models.protocols import Ask, Question, Say, protocol_of


@dataclass(frozen=True)
class Reply:
    """Anything that a server can do wrong.

    Args:
        body: what is sent; a document is sent as JSON.
        delay_s: before anything is sent.
        cut: the connection ends before the announced length.
        reset: the connection is reset once the body is sent.
        drip_s: between two bytes of the body, which is then repeated for ever.
        repeated: times that the body is sent, without an announced length.
    """

    status: int = 200
    body: bytes | dict[str, Any] | list[Any] = b""
    delay_s: float = 0.0
    cut: bool = False
    reset: bool = False
    drip_s: float = 0.0
    repeated: int = 1
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[Question], Say | Ask | Reply]


@dataclass
class ModelServer:
    """Runs while it is used as a context; with TLS if it is given a certificate with its key."""

    script: Script
    certificate: Path | None = None
    questions: list[Question] = field(default_factory=list)

    def __enter__(self) -> "ModelServer":
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                _serve(self, model)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda request, client_address: None
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self._http.server_port}"


def _serve(handler: BaseHTTPRequestHandler, model: ModelServer) -> None:
    request = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
    if handler.path.endswith("/api/show"):  # what Ollama knows of a model
        _send(handler, Reply(body={"capabilities": ["completion", "tools"], "model_info": {}, "template": "tools"}))
        return
    protocol = protocol_of(handler.path)
    question = protocol.question(request, dict(handler.headers))
    model.questions.append(question)
    answer = model.script(question)
    if isinstance(answer, Reply):
        time.sleep(answer.delay_s)
        with suppress(OSError):
            _send(handler, answer)
        handler.close_connection = True
    elif "stream" in handler.path or request.get("stream"):
        _send(handler, Reply(body=b"".join(protocol.pieces(answer)), kind=protocol.kind))
    else:
        _send(handler, Reply(body=protocol.whole(answer)))


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    handler.send_response(reply.status)
    handler.send_header("Content-Type", reply.kind)
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    if reply.drip_s or reply.repeated > 1:
        handler.send_header("Connection", "close")
    else:
        handler.send_header("Content-Length", str(len(body) + 100 * (reply.cut or reply.reset)))
    handler.end_headers()
    for part in _parts(body, reply):
        handler.wfile.write(part)
    if reply.reset:
        handler.wfile.flush()
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()


def _parts(body: bytes, reply: Reply) -> Iterator[bytes]:
    if not reply.drip_s:
        yield from repeat(body, reply.repeated)
        return
    while True:
        for byte in body:
            time.sleep(reply.drip_s)
            yield bytes([byte])
