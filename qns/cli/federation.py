"""`qns federation`: a federation document: shown, changed, compared with a later version."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from qns.cli.inputs import STDIN, Input
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.outputs import save
from qns.cli.problems import Problem, visible
from qns.cli.screen import Part, Screen
from qns.errors import FederationError, NameNotKnown, QnsError
from qns.federation.changes import Change, changes
from qns.federation.document import DEFAULT_CAPABILITY, Federation, Organisation
from qns.federation.document_xml import MAX_FEDERATION_BYTES, read_federation, write_federation
from qns.federation.shipped import FEDERATIONS

_DESCRIPTION = """
Shows a federation document: the organisations of a federation and who hosts what. DOCUMENT
is an .xml file, or agencies, weather or weather-partial, which come with QNS; - is standard
input.

--xml prints the document itself: that is how one of your own begins. --join, --leave and
--host print its next version. --diff tells what a later version changes.
"""
_EXAMPLES = (
    "qns federation weather-partial",
    "qns federation agencies --xml",
    "qns federation agencies --join ISTAT --hosts Enterprise,Enterprise/Holder \\\n"
    "                 --endpoint https://qns.istat.example/ --capability 8",
    "qns federation agencies --leave CoC",
    "qns federation agencies --host CoC --hosts Enterprise",
    "qns federation agencies --leave CoC | qns federation agencies --diff -",
)
_SHIPPED = ", ".join(FEDERATIONS)


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands,
        "federation",
        "show, change or compare a federation document",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument("document", metavar="DOCUMENT", help=f"{_SHIPPED}, an .xml file, or -")
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--xml", action="store_true", help="print the document as XML")
    actions.add_argument("--join", metavar="NAME", help="this organisation joins, or comes back")
    actions.add_argument("--leave", metavar="NAME", help="this organisation leaves")
    actions.add_argument("--host", metavar="NAME", help="this member hosts --hosts, nothing else")
    actions.add_argument("--diff", metavar="NEW", help="what changes from DOCUMENT to NEW")
    parser.add_argument(
        "--hosts", metavar="A,B", help="with --join or --host: the classes; '' for none"
    )
    parser.add_argument("--endpoint", metavar="URL", help="with --join: where its peer is reached")
    parser.add_argument(
        "--capability",
        metavar="N",
        type=int,
        help=f"with --join: its fan-out ({DEFAULT_CAPABILITY} if left out)",
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE", help="write the XML there and tell what changed"
    )
    add_json_option(parser, "the document, or with --diff the changes, as one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    _check_usage(args)
    document = _read(args.document, screen)
    if document is None:
        return 2
    if args.diff is not None:
        new = _read(args.diff, screen)
        if new is None:
            return 2
        _compare(document, new, screen)
    elif args.xml or _alters(args):
        _write(document, _next_version(args, document), args.output, screen)
    elif screen.as_json:
        screen.json(_as_json(document))
    else:
        _show(document, screen)
    return 0


def _alters(args: Namespace) -> bool:
    return any(name is not None for name in (args.join, args.leave, args.host))


def _check_usage(args: Namespace) -> None:
    joins, hosts = args.join is not None, args.host is not None
    writes = args.xml or _alters(args)
    for option, given, fits, companions in (
        ("--hosts", args.hosts is not None, joins or hosts, "--join or --host"),
        ("--endpoint", args.endpoint is not None, joins, "--join"),
        ("--capability", args.capability is not None, joins, "--join"),
        ("-o", args.output is not None, writes, "--xml, --join, --leave or --host"),
    ):
        if given and not fits:
            raise QnsError(f"{option} goes with {companions}", remedy="see qns federation --help")
    if (joins or hosts) and args.hosts is None:
        raise QnsError(
            f"{'--join' if joins else '--host'} without --hosts",
            remedy="name the classes, as in --hosts A,B; --hosts '' is none",
        )
    if writes and args.as_json:
        raise QnsError("a document is written as XML, not as JSON", remedy="leave out --json")
    if args.document == args.diff == STDIN:
        raise QnsError("standard input cannot be both documents", remedy="name a file for one")


def _read(name: str, screen: Screen) -> Federation | None:
    """A shipped document by its name, or the one in a file; what is wrong with it is told."""
    shipped = FEDERATIONS.get(name.casefold())
    if shipped is not None:
        return shipped
    if name != STDIN and not Path(name).suffix and not os.path.exists(name):
        problem = NameNotKnown("federation", name, FEDERATIONS)
        near = f"{problem.remedy} or " if problem.near_misses else ""
        problem.remedy = f"{near}give {_SHIPPED} or an .xml file"
        raise problem
    with Input(name) as source:
        try:
            return read_federation(source.read(MAX_FEDERATION_BYTES))
        except QnsError as error:
            screen.error(Problem.of(error, source.name))
    return None


# -- changing ---------------------------------------------------------------------------------


def _next_version(args: Namespace, document: Federation) -> Federation:
    """As the options ask; the same document if they ask for no change."""
    if args.leave is not None:
        return document.without(args.leave)
    if args.join is not None:
        if args.join in document:
            raise FederationError(
                f"{args.join} is a member already", remedy="--host changes what it hosts"
            )
        capability = DEFAULT_CAPABILITY if args.capability is None else args.capability
        joining = Organisation(
            args.join, _classes(args, document), args.endpoint or "", capability=capability
        )
        return document.with_organisation(joining)
    if args.host is not None:
        classes = _classes(args, document)
        if document[args.host].hosts == classes:
            raise FederationError(
                f"{args.host} hosts just that already", remedy="no new version is needed"
            )
        return document.hosting(args.host, classes)
    return document


def _classes(args: Namespace, document: Federation) -> frozenset[str]:
    names = [name.strip() for name in args.hosts.split(",") if name.strip()]
    try:
        return frozenset(map(document.schema.data_class, names))
    except QnsError as problem:
        raise problem.at("--hosts") from None


def _write(old: Federation, new: Federation, output: str | None, screen: Screen) -> None:
    data = write_federation(new)
    if output is None:
        screen.raw(data.decode("utf-8"))
        return
    save(output, data)
    screen.line(f"version {new.version} of {visible(new.name)} is in {visible(output)}")
    if new is not old:
        for change in changes(old, new):
            screen.line("  ", visible(change.text))


# -- telling ----------------------------------------------------------------------------------


def _compare(old: Federation, new: Federation, screen: Screen) -> None:
    found = changes(old, new)
    if screen.as_json:
        told = [_change_as_json(change) for change in found]
        screen.json({"name": new.name, "from": old.version, "to": new.version, "changes": told})
        return
    screen.line((visible(new.name), "bold"), f", from version {old.version} to {new.version}")
    for change in found:
        screen.line("  ", visible(change.text))
    if not found:
        screen.line("  nothing changes but the version")


def _change_as_json(change: Change) -> dict[str, Any]:
    return {
        "change": change.kind.value,
        "organisation": change.organisation or None,
        "classes": list(change.classes),
        "text": change.text,
    }


def _as_json(document: Federation) -> dict[str, Any]:
    return {
        "name": document.name,
        "version": document.version,
        "schema": document.schema.name,
        "organisations": [
            {
                "name": each.name,
                "joined": each.joined,
                "capability": each.capability,
                "endpoint": each.endpoint or None,
                "certificate": each.certificate or None,
                "hosts": _in_order(each, document),
            }
            for each in document.organisations.values()
        ],
    }


def _show(document: Federation, screen: Screen) -> None:
    size, classes = len(document.organisations), len(document.schema.classes)
    screen.line(
        (visible(document.name), "bold"),
        f", version {document.version}: {size:,} organisation{'' if size == 1 else 's'}; "
        f"schema {document.schema.name}, {classes:,} class{'' if classes == 1 else 'es'}",
    )
    head = ["organisation", "joined", "capability", "endpoint", "hosts"]
    rows = [_row(each, document) for each in document.organisations.values()]
    widths = [max(map(cell_len, column)) for column in zip(head, *rows, strict=True)]
    styles = ["bold cyan", "", "", "", ""]
    screen.line(*_cells(head, widths, ["dim"] * len(head)))
    for row in rows:
        screen.line(*_cells(row, widths, styles))


def _row(organisation: Organisation, document: Federation) -> list[str]:
    hosts = _in_order(organisation, document)
    every = len(hosts) == len(document.schema.classes)
    return [
        visible(organisation.name),
        str(organisation.joined),
        str(organisation.capability),
        organisation.endpoint or "none",
        "every class" if every else ", ".join(hosts) or "nothing",
    ]


def _in_order(organisation: Organisation, document: Federation) -> list[str]:
    return [path for path in document.schema.classes if path in organisation.hosts]


def _cells(texts: list[str], widths: list[int], styles: list[str]) -> list[Part]:
    """A line of the table; numbers stand to the right."""
    parts: list[Part] = []
    for text, width, style in zip(texts, widths, styles, strict=True):
        space = " " * (width - cell_len(text))
        is_number = text.isdecimal() and style == ""
        parts += [space, (text, style), "  "] if is_number else [(text, style), space, "  "]
    return parts
