"""Bytes that are not a valid HTTP request; the peer rejects each or closes the connection."""

from __future__ import annotations

from typing import Final

from tests.soap.hostile.wire import ask_peer

_GOSSIP = ask_peer("gossip")
_HEAD = b"POST /peer HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\n"


def _with(headers: bytes, body: bytes = _GOSSIP) -> bytes:
    return _HEAD + headers + b"\r\n\r\n" + body


_CHUNKED = b"Transfer-Encoding: chunked"
_TRUE_LENGTH = b"Content-Length: %d" % len(_GOSSIP)

CASES: Final[dict[str, bytes]] = {
    "nothing": b"",
    "a line break": b"\r\n",
    "not HTTP": b"hello, is anybody there?\r\n\r\n",
    "the beginning of TLS": bytes.fromhex("16030100c8010000c40303") + bytes(190),
    "zeros": bytes(10_000),
    "half a head": _HEAD,
    "an unknown method": b"STEAL /peer HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "PUT": b"PUT /peer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    "POST to /health": b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    "another path": b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/3.7": b"POST /peer HTTP/3.7\r\nHost: localhost\r\n\r\n",
    "a path of 100,000 characters": b"GET /"
    + b"a" * 100_000
    + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a header of 100,000 characters": _with(b"X: " + b"a" * 100_000 + b"\r\n" + _TRUE_LENGTH),
    "a header without a colon": _with(b"banana\r\n" + _TRUE_LENGTH),
    "a NUL in a header": _with(b"X: \x00\r\n" + _TRUE_LENGTH),
    "a length that is none": _with(b"Content-Length: banana"),
    "a negative length": _with(b"Content-Length: -1"),
    "two lengths": _with(b"Content-Length: 3\r\n" + _TRUE_LENGTH),
    "a length and chunks": _with(_TRUE_LENGTH + b"\r\n" + _CHUNKED),
    "more promised than sent": _with(b"Content-Length: 100000"),
    "2 MB promised, nothing sent": _with(b"Content-Length: 2000000", b""),
    "10^30 bytes promised": _with(b"Content-Length: 1" + b"0" * 30),
    "a chunk's length that is none": _with(_CHUNKED, b"zz\r\n" + _GOSSIP),
    "a negative chunk": _with(_CHUNKED, b"-1\r\n" + _GOSSIP),
    "a chunk longer than it says": _with(_CHUNKED, b"5\r\n" + _GOSSIP + b"\r\n0\r\n\r\n"),
    "a chunk shorter than it says": _with(_CHUNKED, b"ffff\r\n" + _GOSSIP + b"\r\n0\r\n\r\n"),
    "chunks without an end": _with(_CHUNKED, b"%x\r\n%b\r\n" % (len(_GOSSIP), _GOSSIP)),
    "2 MB in chunks of one byte": _with(_CHUNKED, b"1\r\n<\r\n" * 330_000 + b"0\r\n\r\n"),
    "an unknown transfer encoding": _with(b"Transfer-Encoding: banana"),
}
