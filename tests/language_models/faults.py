"""The ways in which the service of a language model fails."""

from tests.language_models.scripts import failure
from tests.language_models.server import Reply

HTML = Reply(body=b"<html><body>Please log in.</body></html>", kind="text/html")
HOUR = "3600"

FAULTS: dict[str, Reply] = {
    "401": failure(401),
    "404": failure(404),
    "429": failure(429),
    "429, again in an hour": failure(429, **{"Retry-After": HOUR}),
    "500": failure(500),
    "503": failure(503),
    "an array": Reply(body=b"[1, 2, 3]"),
    "a number": Reply(body=b"7"),
    "nothing": Reply(),
    "malformed JSON": Reply(body=b'{"candidates": [{'),
    "fields of other types": Reply(body={"candidates": 5, "choices": {}, "content": 7, "message": [None], "usage": ""}),
    "a page to log in": HTML,
    "the end before its end": Reply(body=b'{"candidates"', cut=True),
    "a reset in the middle": Reply(body=b'{"candidates"', reset=True),
    "a byte now and then": Reply(body=b'{"candidates": [], "choices": [], "content": [], "message": {}}', drip_s=0.02),
    "silence": Reply(delay_s=3.0),
    "an endless answer": Reply(body=b" " * 2**20, repeated=64),
    "an endless stream": Reply(body=b"data: {}\n\n" * 2**16, repeated=64, kind="text/event-stream"),
    "a redirect": failure(307, Location="https://elsewhere.example/v1"),
}
"""What a server answers. Whoever asks it for an analysis gets the engine's own."""

NOT_REPEATED = ("401", "404", "429, again in an hour", "a redirect")
"""Where a second request would not help."""
