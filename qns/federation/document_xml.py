"""Federation document as XML: reads and writes the file (`schemas/federation.xsd`).

Reading what was written gives the same document, and equal documents give equal bytes, so that two
peers can compare theirs.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from qns.cbr.domains import INTEGER
from qns.d2q.lexical import WHITE_SPACE, checked_name, read_value
from qns.d2q.schema import Schema
from qns.d2q.schema_xml import schema_in, write_schema_into
from qns.d2q.xml import (
    Element,
    child,
    line_of,
    new_root,
    parse_xml,
    qualified,
    to_bytes,
    validate,
    wrong_root,
)
from qns.errors import DuplicateId, LimitExceeded, QnsError, ValueRefused, shorten
from qns.federation.certificate import checked_block, read_certificate
from qns.federation.document import DEFAULT_CAPABILITY, Federation, Organisation
from qns.federation.rights_xml import GROUP, RIGHTS, groups_in, rules_in, write_rights_into
from qns.federation.roots_xml import (
    ROOTS,
    SIGNATURE,
    read_expires,
    roots_in,
    signature_in,
    write_expires,
    write_roots_into,
    write_signatures_into,
)

MAX_FEDERATION_BYTES: Final = 3_000_000
"""Limits the document, so that a peer can fetch it in one message."""
MAX_ORGANISATIONS: Final = 10_000
MAX_NAME_LENGTH: Final = 200
MAX_ENDPOINT_LENGTH: Final = 2_000

_MAX_ELEMENTS = 750_000  # as many as fit into the bytes, as they are written
_ROOT, _ORGANISATION = qualified("federation"), qualified("organisation")
_TLS, _SEAL, _HOSTED = qualified("tls"), qualified("seal"), qualified("hosted")
_FORMER_TLS = qualified("certificate")  # documents of QNS 0.2.0 have it
_URL = re.compile(rf"[!-~]{{1,{MAX_ENDPOINT_LENGTH}}}\Z")


def write_federation(federation: Federation, *, with_signatures: bool = True) -> bytes:
    """Returns the document as XML, with organisations, classes and labels in a fixed order.

    The signatures of the document and of its root sets can be left out: they sign the rest.
    """
    if len(federation.organisations) > MAX_ORGANISATIONS:
        raise _too_many_organisations(len(federation.organisations))
    root = new_root("federation")
    root.set("name", _checked_name("a federation's name", federation.name))
    root.set("version", _integer_text(federation.version))
    if federation.expires is not None:
        root.set("expires", write_expires(federation.expires))
    write_schema_into(child(root, qualified("schema")), _in_order(federation.schema))
    for name, organisation in sorted(federation.organisations.items()):
        try:
            _write(child(root, qualified("organisation")), organisation)
        except QnsError as problem:
            raise problem.at(f"organisation {shorten(name)}") from None
    write_rights_into(root, federation.groups, federation.rights)
    for roots in federation.roots:
        write_roots_into(root, roots, with_signatures=with_signatures)
    if with_signatures:
        write_signatures_into(root, federation.signatures)
    data = to_bytes(root)
    if len(data) > MAX_FEDERATION_BYTES:
        raise LimitExceeded(
            f"a federation document of {len(data):,} bytes",
            remedy=f"at most {MAX_FEDERATION_BYTES:,}",
        )
    return data


def read_federation(data: bytes | str, *, max_bytes: int = MAX_FEDERATION_BYTES) -> Federation:
    """Reads a document. Raises QnsError with the line."""
    root = parse_xml(data, max_bytes=max_bytes, max_elements=_MAX_ELEMENTS)
    if root.tag != _ROOT:
        raise wrong_root(root, _ROOT)
    validate(root, "federation")
    described, *others = root
    members = [each for each in others if each.tag == _ORGANISATION]
    schema = schema_in(described)
    roots = tuple(roots_in(each) for each in others if each.tag == ROOTS)
    signatures = tuple(signature_in(each) for each in others if each.tag == SIGNATURE)
    try:
        name = _checked_name("a federation's name", root.get("name", ""))
        expires = read_expires(root.get("expires", "")) if "expires" in root.attrib else None
        version = _integer(root, "version")
        empty = Federation(name, schema, {}, version, expires, roots, signatures)
    except QnsError as problem:
        raise problem.at_mark(line_of(root), None) from None
    if len(members) > MAX_ORGANISATIONS:
        line = line_of(members[MAX_ORGANISATIONS])
        raise _too_many_organisations(len(members)).at_mark(line, None)
    found: dict[str, Organisation] = {}
    lines: dict[str, int] = {}
    for element in members:
        try:
            organisation = _read(element, schema)
            if organisation.name in found:
                raise DuplicateId(
                    f"organisation {shorten(organisation.name)} is named twice, first in line "
                    f"{lines[organisation.name]}",
                    remedy="remove one",
                )
            # The document's own checks, for one organisation at a time, so that its line is known.
            replace(empty, organisations={organisation.name: organisation})
        except QnsError as problem:
            raise problem.at_mark(line_of(element), None) from None
        found[organisation.name] = organisation
        lines[organisation.name] = line_of(element)
    groups = groups_in([each for each in others if each.tag == GROUP], found)
    rights = [each for each in others if each.tag == RIGHTS]
    rules = rules_in(rights[0], schema, [*found, *groups]) if rights else None
    return replace(empty, organisations=found, groups=groups, rights=rules)


def checked_endpoint(text: str) -> str:
    """Returns an endpoint if it is an http or https URL with a host and without a password."""
    try:
        parts = urlsplit(text)
        fits = parts.port != 0 and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # unbalanced brackets, or a port that is no number
        fits = False
    if not fits or not _URL.match(text):
        raise ValueRefused(
            f"the endpoint {shorten(text)} is not an http or https URL with a host",
            remedy="give one such as https://qns.example.org:8443/, or none",
        )
    if "@" in parts.netloc:
        raise ValueRefused(
            f"the endpoint of {shorten(parts.hostname or '')} has a user or a password in it",
            remedy="everybody reads this document: remove what stands before the @",
        )
    return text


def _write(element: Element, organisation: Organisation) -> None:
    element.set("name", _checked_name("an organisation's name", organisation.name))
    if organisation.endpoint:
        element.set("endpoint", checked_endpoint(organisation.endpoint))
    element.set("capability", _integer_text(organisation.capability))
    element.set("joined", _integer_text(organisation.incarnation))
    for path in sorted(organisation.hosts):
        child(element, qualified("hosts")).set("class", path)
    for path in sorted(organisation.hosted):
        child(element, _HOSTED).set("class", path)
    for tag, certificates in ((_TLS, organisation.tls), (_SEAL, organisation.seals)):
        for pem in certificates:
            child(element, tag, pem)


def _read(element: Element, schema: Schema) -> Organisation:
    """Reads an organisation from a valid element. Errors have the line of the inner element."""
    name = _checked_name("an organisation's name", element.get("name", ""))
    hosts: set[str] = set()
    hosted: set[str] = set()
    certificates: dict[str, list[str]] = {_TLS: [], _SEAL: []}
    node = element
    try:
        endpoint = element.get("endpoint")
        if endpoint is not None:
            checked_endpoint(endpoint)
        capability = _integer(element, "capability", DEFAULT_CAPABILITY)
        incarnation = _integer(element, "joined")
        for node in element:
            if node.tag == _FORMER_TLS:
                certificates[_TLS] += _former(node.text or "")
                continue
            if node.tag in certificates:
                certificates[node.tag].append(read_certificate(node.text or "").pem)
                continue
            path = schema.data_class(node.get("class", "").strip(WHITE_SPACE))
            if path in hosts | hosted:
                raise DuplicateId(f"the class {path} is named twice", remedy="remove one")
            (hosted if node.tag == _HOSTED else hosts).add(path)
        return Organisation(
            name,
            frozenset(hosts),
            endpoint or "",
            tuple(certificates[_TLS]),
            capability,
            incarnation,
            tuple(certificates[_SEAL]),
            frozenset(hosted),
        )
    except QnsError as problem:
        problem.at(f"organisation {shorten(name)}")
        raise problem.at_mark(line_of(node), None) from None


def _former(text: str) -> list[str]:
    """Returns the certificate of a former document; none if it is not X.509.

    Formerly only the block in PEM was checked, and no peer used it. A stored document must open.
    """
    block = checked_block(text)
    try:
        return [read_certificate(block).pem]
    except QnsError:
        return []


def _in_order(schema: Schema) -> Schema:
    """Returns the schema with its classes ordered by path and its labels by number."""
    classes = {
        path: {prop.name: prop.domain.name for prop in schema.properties[path]}
        for path in sorted(schema.classes)
    }
    labels = sorted(
        (abs(number), label) for label, number in schema.labels.items()
    )  # treats -0 as 0
    return Schema(schema.name, classes, {label: number for number, label in labels})


def _checked_name(kind: str, text: str) -> str:
    if len(text) > MAX_NAME_LENGTH:
        raise LimitExceeded(
            f"{kind} of {len(text):,} characters", remedy=f"at most {MAX_NAME_LENGTH}"
        )
    return checked_name(kind, text)


def _integer(element: Element, attribute: str, default: int = 0) -> int:
    text = element.get(attribute)
    key = default if text is None else read_value(INTEGER, text.strip(WHITE_SPACE))
    assert isinstance(key, int)
    return key


def _integer_text(number: int) -> str:
    return str(INTEGER.key(number))


def _too_many_organisations(number: int) -> LimitExceeded:
    return LimitExceeded(f"{number:,} organisations", remedy=f"at most {MAX_ORGANISATIONS:,}")
