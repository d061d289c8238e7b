"""Builds valid requests as text; keyword arguments replace parts of them to make them hostile."""

from __future__ import annotations

from base64 import b64encode

from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.shipped import AGENCIES

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
QNS = "urn:qns:peer:1"


def envelope(body: str, header: str = "", attributes: str = "") -> bytes:
    """Returns an envelope whose Body contains the text `body`."""
    head = f"<s:Header>{header}</s:Header>" if header else ""
    text = (
        f'<s:Envelope xmlns:s="{SOAP}" xmlns="{QNS}" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"{attributes}>'
        f"{head}<s:Body>{body}</s:Body></s:Envelope>"
    )
    return text.encode("utf-8", "surrogatepass")


def element(name: str, content: object = "") -> str:
    return f"<{name}>{content}</{name}>"


def elements(**contents: object) -> str:
    """Returns elements as text.

    None omits an element and a list repeats it. A trailing _ is removed from the name.
    """
    return "".join(
        element(name.rstrip("_"), each)
        for name, content in contents.items()
        for each in (content if isinstance(content, list) else [content])
        if each is not None
    )


# -- the port Peer ----------------------------------------------------------------------------


def origin(**changed: object) -> str:
    return element("origin", elements(**{"organisation": "INAIL", "document": 1} | changed))


def event_xml(id: str = "e2", source: str = "INAIL") -> bytes:
    fields = {
        "id": id,
        "class": "Enterprise/Holder",
        "source": source,
        "data": {"Name": "M. Mecalla"},
        "quality": {"Name.Accuracy": "low"},
    }
    return write_event(EventReader(AGENCIES).from_fields(fields), AGENCIES)


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def entry(**changed: object) -> str:
    """Returns the content of an entry of INPS in the stream of INAIL."""
    sound = {"receiver": "INPS", "joined": 1, "epoch": 1, "number": 2, "confirmed": 1}
    return elements(**sound | changed)


def notification(**changed: object) -> str:
    sound = {
        "source": "INAIL",
        "joined": 1,
        "epoch": 1,
        "sequence": 2,
        "event": "e2",
        "xml": base64(event_xml()),
        "remaining": "60.0",
        "entry": entry(),
        "path": "INAIL",
    }
    return element("notification", elements(**sound | changed))


def notify(*notifications: str, skips: str = "", **changed: object) -> bytes:
    content = "".join(notifications or [notification()])
    return envelope(element("notify", origin(**changed) + content + skips))


def standing(**changed: object) -> str:
    sound = {"joined": 1, "own": 1, "consumerEpoch": 1, "epoch": 1, "last": 0}
    return elements(**sound | changed)


def greeting(**changed: object) -> str:
    sound = {
        "joined": 1,
        "epoch": 1,
        "number": 1,
        "heldEpoch": 0,
        "heldVersion": 0,
        "heldDigest": "",
        "standing": standing(),
        "version": 0,
        "digest": "",
    }
    return elements(**sound | changed)


def change_sub(**changed: object) -> bytes:
    sound: dict[str, object] = {"joined": 1, "own": 1, "epoch": 1, "base": None, "version": 1}
    sound |= {"added": None, "removed": None, "digest": "0"}
    return ask_peer("changeSub", elements(**sound | changed))


def ask_peer(operation: str, content: str = "", **changed: object) -> bytes:
    return envelope(element(operation, origin(**changed) + content))


# -- the port Local ---------------------------------------------------------------------------


def ask_local(operation: str, **contents: object) -> bytes:
    return envelope(element(operation, elements(**{"owner": "anna"} | contents)))


def subscribe(text: str, **more: object) -> bytes:
    """Returns a request to subscribe; `text` is used without escaping."""
    sound = {"subscription": text, "id": None, "group": None, "lifetime": None}
    return ask_local("subscribe", **sound | more)


def pull(**changed: object) -> bytes:
    return ask_local("pull", **{"id": "s1", "after": 0, "limit": None, "wait": None} | changed)


def event(**changed: object) -> str:
    sound = {
        "id": "e9",
        "class_": "Enterprise/Holder",
        "source": "INPS",
        "published": None,
        "available": None,
        "data": elements(property="Name", value="M. Mecalla"),
        "quality": elements(property="Name", dimension="accuracy", value="low"),
    }
    return elements(**sound | changed)


def publish(**changed: object) -> bytes:
    return ask_local("publish", event=event(**changed))
