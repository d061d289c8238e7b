"""`qns federation add`, `remove`, `host` and so on: make the next version of a document."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from time import time
from typing import Final

from qns.cli.documents.files import (
    add_action,
    add_document,
    add_expires,
    add_output,
    expiry,
    read_document,
    read_secret,
    write_document,
)
from qns.cli.options import Commands
from qns.cli.screen import Screen
from qns.d2q.schema_files import load_schema
from qns.errors import FederationError, QnsError
from qns.federation.document import DEFAULT_CAPABILITY, Federation, Organisation

Change = Callable[[Namespace, Federation], Federation]

_NEXT: Final = """
Prints the next version of the document. With -o the XML is written to FILE, which may be DOCUMENT
itself, and the changes are printed. The signatures of the document are dropped.
"""


def add(actions: Commands) -> None:
    adding = add_change(
        actions,
        "add",
        "add an organisation",
        "Adds an organisation, also one that had left.",
        "qns federation add agencies ISTAT --hosts Enterprise,Enterprise/Holder "
        "--endpoint http://127.0.0.1:8704/ --capability 8",
        _added,
    )
    adding.add_argument("name", metavar="NAME", help="the new organisation")
    _add_hosts(adding)
    adding.add_argument("--endpoint", metavar="URL", default="", help="the address of its peer")
    adding.add_argument(
        "--capability",
        metavar="N",
        type=int,
        default=DEFAULT_CAPABILITY,
        help=f"its fan-out (default: {DEFAULT_CAPABILITY})",
    )
    removing = add_change(
        actions,
        "remove",
        "remove an organisation",
        "Removes an organisation: the others drop its view and what was waiting for it.",
        "qns federation remove agencies CoC",
        lambda args, document: document.without(args.name),
    )
    removing.add_argument("name", metavar="NAME", help="the organisation")
    hosting = add_change(
        actions,
        "host",
        "set the classes that an organisation hosts",
        "Sets the classes that an organisation hosts, and so may publish events of.",
        "qns federation host agencies CoC --hosts Enterprise",
        _hosting,
    )
    hosting.add_argument("name", metavar="NAME", help="the organisation")
    _add_hosts(hosting)
    fan_out = add_change(
        actions,
        "capability",
        "set the fan-out of an organisation",
        "Sets to how many others an organisation can send one notification.",
        "qns federation capability agencies CoC 8",
        lambda args, document: document.with_capability(args.name, args.capability),
    )
    fan_out.add_argument("name", metavar="NAME", help="the organisation")
    fan_out.add_argument("capability", metavar="N", type=int, help="the fan-out")
    moving = add_change(
        actions,
        "endpoint",
        "set the addresses of peers",
        "Sets the addresses of one or more peers; NAME= removes an address.",
        "qns federation endpoint agencies CoC=http://127.0.0.1:9703/ INPS=http://127.0.0.1:9701/",
        _moved,
    )
    moving.add_argument("endpoints", metavar="NAME=URL", nargs="+", help="the address of a peer")
    certifying = add_change(
        actions,
        "certificates",
        "set the certificates of an organisation",
        "Sets the certificates of an organisation: those that are given replace all of their kind. "
        "A new certificate is given beside the former one until the peer uses it.",
        "qns federation certificates federation.xml CoC --tls old.pem --tls new.pem -o next.xml",
        _certified,
    )
    certifying.add_argument("name", metavar="NAME", help="the organisation")
    for option, kind in (("tls", "for TLS"), ("seal", "of its seal")):
        certifying.add_argument(
            f"--{option}", metavar="FILE", action="append", help=f"a certificate {kind} in PEM"
        )
        certifying.add_argument(
            f"--no-{option}", action="store_true", help=f"remove every certificate {kind}"
        )
    growing = add_change(
        actions,
        "schema",
        "set the schema, which can only grow",
        "Sets the schema, which can only grow: stored subscriptions and events keep their meaning.",
        "qns federation schema federation.xml mine.xml --host Met01 --hosts Report,Report/Snow",
        _grown,
    )
    growing.add_argument("schema", metavar="SCHEMA", help="a shipped schema, a .dtd or .xml file")
    growing.add_argument(
        "--host", metavar="NAME", help="let this organisation host --hosts in the same version"
    )
    growing.add_argument("--hosts", metavar="A,B", help="with --host: the classes")


def add_change(
    actions: Commands, name: str, summary: str, what: str, example: str, change: Change
) -> ArgumentParser:
    """Adds a command that makes the next version of a document."""

    def run(args: Namespace, screen: Screen) -> int:
        document = read_document(args.document)
        changed = change(args, document)
        if changed == replace(document, version=changed.version):
            raise FederationError(
                "the document is like this already", remedy="no new version is needed"
            )
        if args.expires is not None:
            changed = _expiring(changed, args.expires)
        write_document(document, changed, args.output, screen)
        return 0

    parser = add_action(actions, name, summary, f"{what}\n{_NEXT}", (example,), run)
    add_document(parser)
    add_expires(parser, "when the next version of a signed document expires")
    add_output(parser)
    return parser


def _expiring(document: Federation, text: str) -> Federation:
    if not document.roots:
        raise FederationError(
            "only a signed document expires", remedy="qns federation rotate adds root keys"
        )
    return replace(document, expires=expiry(text, time()))


def _add_hosts(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--hosts", metavar="A,B", required=True, help="the classes that it hosts; '' for none"
    )


def _added(args: Namespace, document: Federation) -> Federation:
    if args.name in document:
        raise FederationError(
            f"{args.name} is a member already", remedy="change it with qns federation host"
        )
    hosts = _classes(args.hosts, document)
    organisation = Organisation(args.name, hosts, args.endpoint, capability=args.capability)
    return document.with_organisation(organisation)


def _hosting(args: Namespace, document: Federation) -> Federation:
    classes = _classes(args.hosts, document)
    if document[args.name].hosts == classes:
        raise FederationError(
            f"{args.name} hosts these classes already", remedy="no new version is needed"
        )
    return document.hosting(args.name, classes)


def _moved(args: Namespace, document: Federation) -> Federation:
    endpoints: dict[str, str] = {}
    for text in args.endpoints:
        name, equals, url = text.partition("=")
        if not equals or "://" in name:
            raise QnsError(f"{text} names no organisation", remedy=f"write NAME={text}")
        if name in endpoints:
            raise QnsError(f"two endpoints for {name}", remedy="give one for each organisation")
        endpoints[name] = url
    return document.with_endpoints(endpoints)


def _certified(args: Namespace, document: Federation) -> Federation:
    given: dict[str, tuple[str, ...] | None] = {}
    for option, files, removes in (
        ("tls", args.tls, args.no_tls),
        ("seal", args.seal, args.no_seal),
    ):
        if files and removes:
            raise QnsError(
                f"--{option} and --no-{option} contradict each other", remedy="leave out one"
            )
        pems = tuple(read_secret(name).decode("utf-8", "replace") for name in files or ())
        given[option] = pems if files or removes else None
    if given["tls"] is given["seal"] is None:
        raise QnsError("no certificate is given", remedy="give --tls FILE or --seal FILE")
    return document.with_certificates(args.name, tls=given["tls"], seals=given["seal"])


def _grown(args: Namespace, document: Federation) -> Federation:
    if (args.host is None) != (args.hosts is None):
        raise QnsError("--host and --hosts go together", remedy="see qns federation schema --help")
    grown = document.with_schema(load_schema(args.schema))
    if args.host is None:
        return grown
    hosting = grown.hosting(args.host, _classes(args.hosts, grown))
    return replace(hosting, version=grown.version)


def _classes(text: str, document: Federation) -> frozenset[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        return frozenset(map(document.schema.data_class, names))
    except QnsError as problem:
        raise problem.at("--hosts") from None
