"""The codec accepts exactly the envelopes that spyne and its schema accept, with equal objects.

The reference is unmodified spyne: its parser, the schema that it generates and its reader.
"""

from __future__ import annotations

import copy
import logging
import random
from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from qns.edl.messages import (
    ChangeSub,
    Entry,
    Envelope,
    Fence,
    Notification,
    Notify,
    ReachabilityRow,
    Skip,
)
from qns.errors import QnsError
from qns.iil.requests import PullDeliveries, Subscribe
from qns.soap import compat as spyne
from qns.soap.contract import _application, from_spyne, read_unusual
from qns.soap.endpoint import _HAS_ATTRIBUTES, read_ordinary
from qns.soap.envelope import Opened, open_envelope, write_envelope
from qns.soap.hardening import parse_hostile
from qns.soap.operations import BY_TAG, OPERATION_CODECS, OperationCodec
from qns.soap.shapes_local import LocalCall
from tests.soap.messages import messages
from tests.soap.mutations import TEXTS, mutate

REFUSED = "refused"
MUTATIONS_EACH = 8
REQUESTS = st.sampled_from([*OPERATION_CODECS.values(), OPERATION_CODECS["notify"]]).flatmap(
    lambda codec: messages(codec.request.shape).map(
        lambda message: write_envelope(codec.request.write(message)).decode()
    )
)

_ENTRY = Entry("INAIL", 1, 2, 3, 2, (Fence(2, 1),), (Entry("CoC", 1, 1, 1, 1),))
FULL: dict[str, Any] = {
    "notify": Envelope(
        "INPS",
        3,
        (ReachabilityRow("INPS", 1, 2, ("CoC",)),),
        Notify(
            (
                Notification("INPS", 1, 2, 3, "e1", b"<event/>", 60.0, _ENTRY, ("INPS",)),
                Skip("INPS", 1, _ENTRY, 9, "too old"),
            )
        ),
    ),
    "changeSub": Envelope("INPS", 3, (), ChangeSub(1, 1, 2, 4, 5, ("<a/>",), ("<b/>",), "77")),
    "pull": LocalCall("token", PullDeliveries("me", "s1", 3, 10), 5.0),
    "subscribe": LocalCall("token", Subscribe("me", "Thing", "s1", "group", 60.0)),
}


@cache
def _spyne_server() -> Any:
    """Returns a server with the schema that spyne generates, not with the stored one."""
    return spyne.ServerBase(_application.__wrapped__())


def as_spyne_reads(body: bytes, codec: OperationCodec) -> Any:
    server = _spyne_server()
    context = spyne.MethodContext(server, spyne.MethodContext.SERVER)
    context.in_string = [body]
    (context,) = server.generate_contexts(context, "utf-8")
    if context.in_error is None:
        try:
            server.get_in_object(context)
        except ValueError:  # spyne does not catch errors in base64
            return REFUSED
    if context.in_error is not None:
        return REFUSED
    try:
        return from_spyne(codec.request.shape, context.in_object)
    except QnsError:
        return REFUSED


def as_we_read(opened: Opened, codec: OperationCodec) -> Any:
    try:
        return read_ordinary(opened.content, codec)
    except QnsError:
        return REFUSED


@pytest.fixture(autouse=True)
def _silence_spyne(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="spyne")


def test_codec_and_spyne_agree_on_mutated_envelopes() -> None:
    seen: Counter[str] = Counter()

    @given(REQUESTS, st.integers(0, 2**32))
    def agree(text: str, seed: int) -> None:
        choose = random.Random(seed)
        for body in (text.encode(), *(mutate(text, choose) for _ in range(MUTATIONS_EACH))):
            seen[_compared(body)] += 1

    agree()
    mutations = seen.total()
    assert seen["accepted by both"] > mutations / 10, seen
    assert seen["refused by both"] > mutations / 10, seen


@pytest.mark.parametrize("name", ["notify", "changeSub", "pull", "subscribe"])
def test_codec_and_spyne_agree_on_unusual_texts_in_every_leaf(name: str) -> None:
    whole = etree.fromstring(write_envelope(OPERATION_CODECS[name].request.write(FULL[name])))
    seen: Counter[str] = Counter()
    for place, leaf in enumerate(whole.iter()):
        if not len(leaf):
            for text in TEXTS:
                damaged = copy.deepcopy(whole)
                list(damaged.iter())[place].text = text
                seen[_compared(etree.tostring(damaged))] += 1
    assert seen["accepted by both"], seen
    assert seen["refused by both"], seen


def _compared(body: bytes) -> str:
    try:
        root = parse_hostile(body)
        opened = open_envelope(root)
    except QnsError:
        return "no envelope"
    codec = BY_TAG.get(opened.content.tag)
    if codec is None:
        return "no operation"
    if not opened.is_ordinary or _HAS_ATTRIBUTES(opened.content):
        try:
            read_unusual(root, opened.content, codec)
        except QnsError:
            return "refused by spyne alone"
        return "for spyne alone"
    ours, theirs = as_we_read(opened, codec), as_spyne_reads(body, codec)
    assert ours == theirs, body.decode()
    return "refused by both" if ours is REFUSED else "accepted by both"
