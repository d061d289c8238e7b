"""The SOAP 1.1 envelope around a message: headers, body and faults, as elements and as bytes."""

from __future__ import annotations

from typing import Final, NamedTuple

from qns.d2q.lexical import WHITE_SPACE
from qns.d2q.xml import line_of, shown
from qns.errors import DocumentError, LimitExceeded, QnsError, shorten
from qns.soap.codec import Element, prose_content, text_content
from qns.soap.operations import BUSY, FaultDetail, Message

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
    """A header that the sender wants understood, and is not."""


class WrongVersion(QnsError):
    """The root element is no SOAP 1.1 envelope."""


class Opened(NamedTuple):
    """An envelope taken apart."""

    content: Element
    """The one child of the body."""
    is_ordinary: bool
    """There is nothing in it besides the body and WS-Addressing headers."""


def message_id_of(root: Element) -> str:
    """Its WS-Addressing MessageID, if any: answers carry it back, and so do faults."""
    for part in root:
        if part.tag == _HEADER:
            for header in part:
                if header.tag in _MESSAGE_IDS:
                    return (header.text or "").strip()[:MAX_MESSAGE_ID]
    return ""


def open_envelope(root: Element) -> Opened:
    """Takes an envelope apart; QnsError if it is none, or if a header asks too much."""
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
                raise _unfit(part, "a second Body", "send one")
            if len(part) != 1:
                raise _unfit(part, f"a Body with {len(part)} elements", "one operation is expected")
            content = part[0]
            _refuse_words(part)
            is_ordinary = is_ordinary and not part.attrib
        elif part.tag == _HEADER and content is None:
            if header is not None:
                raise _unfit(part, "a second Header", "send one")
            header = part
            is_ordinary = _understands(part) and is_ordinary
        else:
            raise _unfit(part, f"{shown(part.tag)} in an envelope", "only Header and Body may be")
    _refuse_words(root)
    if content is None:
        raise _unfit(root, "an envelope without a Body", "name the operation in its Body")
    return Opened(content, is_ordinary)


def _refuse_words(element: Element) -> None:
    """Between the elements of an envelope there is nothing but white space."""
    for text in (element.text, *(part.tail for part in element)):
        if text and text.strip(WHITE_SPACE):
            raise _unfit(element, f"{shorten(text)} in {shown(element.tag)}", "send elements only")


def _understands(part: Element) -> bool:
    """Whether there are only WS-Addressing headers; QnsError for one that is too much."""
    is_plain = not part.attrib
    has_id = False
    for header in part:
        if header.tag.startswith(_UNDERSTOOD):
            if header.tag in _MESSAGE_IDS:
                if has_id:
                    raise _unfit(header, "a second MessageID", "send one")
                has_id = True
                if (length := len(header.text or "")) > MAX_MESSAGE_ID:
                    raise LimitExceeded(
                        f"a MessageID of {length:,} characters",
                        remedy=f"at most {MAX_MESSAGE_ID:,}",
                    )
            continue
        is_plain = False
        wanted = header.get(_MUST, "0").strip() not in ("0", "false")
        if wanted and header.get(_ACTOR, _NEXT) in ("", _NEXT):
            raise NotUnderstood(
                f"the header {shown(header.tag)} is not understood",
                remedy="leave it out, or do not mark it mustUnderstand",
            )
    return is_plain


def _unfit(element: Element, problem: str, remedy: str) -> DocumentError:
    return DocumentError(problem, remedy=remedy).at_mark(line_of(element), None)


# -- writing ----------------------------------------------------------------------------------


def write_envelope(content: str, *, message_id: str = "", relates_to: str = "") -> bytes:
    """The bytes of an envelope around the text of a message."""
    header = ""
    if message_id or relates_to:
        name, value = ("MessageID", message_id) if message_id else ("RelatesTo", relates_to)
        header = (
            f'<soap:Header><wsa:{name} xmlns:wsa="{ADDRESSING}">{text_content(value)}'
            f"</wsa:{name}></soap:Header>"
        )
    return f"{START}{header}{BODY_START}{content}{END}".encode()


def write_fault(
    fault: Message, detail: FaultDetail, *, relates_to: str = "", code: str = ""
) -> bytes:
    """The bytes of a typed fault; `code` is given if it is neither Client nor Server."""
    told = prose_content(str(QnsError(*detail[:1], place=detail.place, remedy=detail.remedy)))
    # SOAP 1.1, 4.4: the detail is about the body, so a fault about a header has none.
    typed = "" if code == "MustUnderstand" else f"<detail>{fault.write(detail)}</detail>"
    code = code or ("Server" if fault is BUSY else "Client")
    return write_envelope(
        f"<soap:Fault><faultcode>soap:{code}</faultcode><faultstring>{told}</faultstring>"
        f"{typed}</soap:Fault>",
        relates_to=relates_to,
    )


def read_fault(element: Element) -> Element | None:
    """The typed element of a fault, if it has one."""
    for part in element:
        if part.tag == "detail" and len(part):
            typed: Element = part[0]
            return typed
    return None
