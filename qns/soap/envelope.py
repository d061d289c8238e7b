"""Reads and writes the SOAP 1.1 envelope around a message: headers, body and faults."""

from __future__ import annotations

from typing import Final, NamedTuple

from qns.d2q.lexical import WHITE_SPACE
from qns.d2q.xml import line_of, shown
from qns.errors import DocumentError, LimitExceeded, QnsError, shorten
from qns.soap.codec import Element, prose_content, text_content
from qns.soap.operations import BUSY, FaultDetail, Message
from qns.soap.shapes import CONTRACT

SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"
ADDRESSING: Final = "http://www.w3.org/2005/08/addressing"
_ADDRESSING: Final = (ADDRESSING, "http://schemas.xmlsoap.org/ws/2004/08/addressing")
_ENVELOPE, _HEADER, _BODY = f"{{{SOAP}}}Envelope", f"{{{SOAP}}}Header", f"{{{SOAP}}}Body"
FAULT: Final = f"{{{SOAP}}}Fault"
_MUST, _ACTOR = f"{{{SOAP}}}mustUnderstand", f"{{{SOAP}}}actor"
_NEXT = "http://schemas.xmlsoap.org/soap/actor/next"
_MESSAGE_IDS = frozenset(f"{{{namespace}}}MessageID" for namespace in _ADDRESSING)
_UNDERSTOOD = tuple(f"{{{namespace}}}" for namespace in _ADDRESSING)
MAX_MESSAGE_ID: Final = 1_000

START: Final = f'<soap:Envelope xmlns:soap="{SOAP}">'
BODY_START: Final = "<soap:Body>"
END: Final = "</soap:Body></soap:Envelope>"


class NotUnderstood(QnsError):
    """Raised for a header that is marked mustUnderstand and is not understood."""


class WrongVersion(QnsError):
    """Raised if the root element is not a SOAP 1.1 envelope."""


class Opened(NamedTuple):
    """The parts of an envelope that matter to the reader."""

    content: Element
    """The only child of the Body."""
    is_ordinary: bool
    """True if the envelope has only a Body and WS-Addressing headers, and no attributes."""


def message_id_of(root: Element) -> str:
    """Returns the WS-Addressing MessageID, or "". Replies and faults carry it as RelatesTo."""
    for part in root:
        if part.tag == _HEADER:
            for header in part:
                if header.tag in _MESSAGE_IDS:
                    return (header.text or "").strip()[:MAX_MESSAGE_ID]
    return ""


def open_envelope(root: Element, understood: frozenset[str] = frozenset()) -> Opened:
    """Opens an envelope; raises QnsError for a malformed one or a header that is not understood.

    `understood` are the tags of the headers that the caller handles itself.
    """
    if root.tag != _ENVELOPE:
        raise WrongVersion(
            f"the root element is {shown(root.tag)}", remedy="send a SOAP 1.1 envelope"
        )
    is_ordinary = not root.attrib
    content: Element | None = None
    header: Element | None = None
    for part in root:
        if part.tag == _BODY:
            if content is not None:
                raise _malformed(part, "there is a second Body", "send one")
            if len(part) != 1:
                raise _malformed(
                    part, f"there is a Body with {len(part)} elements", "send one operation"
                )
            content = part[0]
            _reject_text(part)
            is_ordinary = is_ordinary and not part.attrib
        elif part.tag == _HEADER and content is None:
            if header is not None:
                raise _malformed(part, "there is a second Header", "send one")
            header = part
            is_ordinary = _has_only_addressing(part, understood) and is_ordinary
        else:
            raise _malformed(
                part, f"there is {shown(part.tag)} in an envelope", "send only a Header and a Body"
            )
    _reject_text(root)
    if content is None:
        raise _malformed(root, "the envelope is without a Body", "send the operation in a Body")
    return Opened(content, is_ordinary)


def _reject_text(element: Element) -> None:
    """Raises DocumentError if there is text, other than white space, between the child elements."""
    for text in (element.text, *(part.tail for part in element)):
        if text and text.strip(WHITE_SPACE):
            raise _malformed(
                element,
                f"there is the text {shorten(text)} in {shown(element.tag)}",
                "send elements only",
            )


def _has_only_addressing(part: Element, understood: frozenset[str]) -> bool:
    """True if there are only WS-Addressing headers; raises QnsError for an unacceptable header."""
    is_plain = not part.attrib
    has_id = False
    for header in part:
        if header.tag.startswith(_UNDERSTOOD):
            if header.tag in _MESSAGE_IDS:
                if has_id:
                    raise _malformed(header, "there is a second MessageID", "send one")
                has_id = True
                if (length := len(header.text or "")) > MAX_MESSAGE_ID:
                    raise LimitExceeded(
                        f"there is a MessageID of {length:,} characters",
                        remedy=f"use at most {MAX_MESSAGE_ID:,}",
                    )
            continue
        is_plain = False
        wanted = header.get(_MUST, "0").strip() not in ("0", "false")
        if wanted and header.tag not in understood and header.get(_ACTOR, _NEXT) in ("", _NEXT):
            raise NotUnderstood(
                f"the header {shown(header.tag)} is not understood",
                remedy="leave it out, or do not mark it mustUnderstand",
            )
    return is_plain


def _malformed(element: Element, problem: str, remedy: str) -> DocumentError:
    return DocumentError(problem, remedy=remedy).at_mark(line_of(element), None)


# -- writing ----------------------------------------------------------------------------------


def write_envelope(content: str, *, message_id: str = "", relates_to: str = "") -> bytes:
    """Returns the bytes of an envelope around the text of a message."""
    header = ""
    if message_id or relates_to:
        name, value = ("MessageID", message_id) if message_id else ("RelatesTo", relates_to)
        header = (
            f'<soap:Header><wsa:{name} xmlns:wsa="{ADDRESSING}">{text_content(value)}'
            f"</wsa:{name}></soap:Header>"
        )
    return f"{START}{header}{BODY_START}{content}{END}".encode()


def write_fault(
    fault: Message,
    detail: FaultDetail,
    *,
    relates_to: str = "",
    code: str = "",
    contract: int = CONTRACT,
) -> bytes:
    """Returns the bytes of a typed fault; `code` replaces the fault code Client or Server."""
    error = QnsError(detail.problem, place=detail.place, remedy=detail.remedy)
    text = prose_content(str(error))
    # SOAP 1.1, 4.4: the detail concerns the Body, so a fault about a header has no detail.
    typed = "" if code == "MustUnderstand" else f"<detail>{fault.write(detail, contract)}</detail>"
    code = code or ("Server" if fault is BUSY else "Client")
    return write_envelope(
        f"<soap:Fault><faultcode>soap:{code}</faultcode><faultstring>{text}</faultstring>"
        f"{typed}</soap:Fault>",
        relates_to=relates_to,
    )


def read_fault(element: Element) -> Element | None:
    """Returns the typed element in a fault's detail, or None."""
    for part in element:
        if part.tag == "detail" and len(part):
            typed: Element = part[0]
            return typed
    return None
