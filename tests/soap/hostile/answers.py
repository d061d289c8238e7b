"""The requests that fill a peer before the corpus is sent, and the kinds of its answers."""

from __future__ import annotations

from lxml import etree

from qns.soap.shapes import NAMESPACE, Port
from tests.soap.hostile.case import Answer
from tests.soap.hostile.wire import (
    SOAP,
    ask_peer,
    base64,
    element,
    entry,
    event_xml,
    notification,
    notify,
    publish,
    standing,
    subscribe,
)

LONGEST_ANSWER = 20_000
"""Bytes of an answer: it names the problem and does not repeat the request."""
_TAKEN = f"{{{NAMESPACE}}}taken"

# Subscriptions of two users, a delivered and forwarded event of INAIL, and an event of INPS.
BEFORE: list[tuple[Port, bytes]] = [
    (Port.LOCAL, subscribe("Enterprise/Holder", id="s1")),
    (Port.LOCAL, subscribe("Enterprise/Holder", id="s2", owner="bruno")),
    (
        Port.PEER,
        notify(
            notification(
                event="e1",
                sequence=1,
                xml=base64(event_xml("e1")),
                entry=entry(number=1, confirmed=0) + element("child", entry(receiver="CoC")),
            )
        ),
    ),
    (Port.LOCAL, publish(id="p1", available="INF")),
    (Port.PEER, ask_peer("acknowledgeStream", element("standing", standing()))),
]


def kind_of(status: int, body: bytes) -> Answer:
    """Returns the kind of an answer; raises AssertionError for one that no peer may give."""
    assert body.startswith(b"<"), (status, body)
    assert len(body) <= LONGEST_ANSWER
    content = etree.fromstring(body).find(f"{{{SOAP}}}Body")[0]  # type: ignore[index]
    if content.tag != f"{{{SOAP}}}Fault":
        assert status == 200
        outcomes = [each.text for each in content.iter(_TAKEN)]
        return Answer.NOT_TAKEN if outcomes and set(outcomes) == {"false"} else Answer.SERVED
    assert status in (500, 413)
    assert b"Traceback" not in body
    code, detail = content.findtext("faultcode"), content.find("detail")
    if detail is None:
        return Answer(code.rpartition(":")[2])
    answer = Answer(etree.QName(detail[0]).localname)
    assert detail[0].findtext(f"{{{NAMESPACE}}}problem")
    assert code == ("soap:Server" if answer is Answer.BUSY else code)
    return answer
