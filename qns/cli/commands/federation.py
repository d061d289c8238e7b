"""`qns federation`: shows, changes and compares federation documents."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from qns.cli.inputs import STDIN, Input
from qns.cli.options import Commands, add_json_option, new_command
from qns.cli.outputs import save
from qns.cli.problems import Problem, visible
from qns.cli.screen import Screen
from qns.cli.table_layout import table_lines
from qns.cli.wording import counted
from qns.d2q.schema_files import load_schema
from qns.errors import FederationError, NameNotKnown, QnsError
from qns.federation.acceptance import check_change
from qns.federation.changes import Change, changes
from qns.federation.document import DEFAULT_CAPABILITY, Federation, Organisation
from qns.federation.document_xml import MAX_FEDERATION_BYTES, read_federation, write_federation
from qns.federation.shipped import FEDERATIONS

_DESCRIPTION = """
Shows a federation document: the organisations of a federation and the classes that each of
them hosts. DOCUMENT is an .xml file, or one of the shipped documents agencies, weather and
weather-partial; - is standard input.

--schema without a DOCUMENT prints the first version of a new document, for your own schema.
--join, --leave, --host, --endpoint and --schema print the next version of a document; a
schema can only grow. --xml prints the document as it is. --diff prints what a later version
changes.
"""
_EXAMPLES = (
    "qns federation weather-partial",
    "qns federation agencies --xml",
    "qns federation agencies --join ISTAT --hosts Enterprise,Enterprise/Holder \\\n"
    "                 --endpoint http://127.0.0.1:8704/ --capability 8",
    "qns federation --schema weather --name storms --join Met01 --hosts Report \\\n"
    "                 --endpoint http://127.0.0.1:8701/",
    "qns federation agencies --endpoint CoC=http://127.0.0.1:9703/",
    "qns federation agencies --leave CoC",
    "qns federation agencies --host CoC --hosts Enterprise",
    "qns federation agencies --leave CoC | qns federation agencies --diff -",
)
_SHIPPED = ", ".join(FEDERATIONS)
_HEAD = ("organisation", "joined", "capability", "endpoint", "hosts")


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands,
        "federation",
        "show, change or compare a federation document",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument(
        "document", metavar="DOCUMENT", nargs="?", help=f"{_SHIPPED}, an .xml file, or -"
    )
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--xml", action="store_true", help="print the document as XML")
    actions.add_argument("--join", metavar="NAME", help="add this organisation")
    actions.add_argument("--leave", metavar="NAME", help="remove this organisation")
    actions.add_argument("--host", metavar="NAME", help="set the classes of this organisation")
    actions.add_argument("--diff", metavar="NEW", help="print the changes from DOCUMENT to NEW")
    parser.add_argument(
        "--hosts", metavar="A,B", help="with --join or --host: the classes; '' for none"
    )
    parser.add_argument(
        "--endpoint",
        metavar="[NAME=]URL",
        action="append",
        help="set the address of the peer of NAME, or with --join that of the new member; a URL "
        "that is left out removes it; can be repeated",
    )
    parser.add_argument(
        "--schema",
        metavar="SCHEMA",
        help="set the schema: a shipped one, a .dtd file or an .xml file; without a DOCUMENT, "
        "begin a new one",
    )
    parser.add_argument(
        "--name",
        help="with --schema, without a DOCUMENT: the federation's name (default: that of "
        "the schema)",
    )
    parser.add_argument(
        "--capability",
        metavar="N",
        type=int,
        help=f"with --join: its fan-out (default: {DEFAULT_CAPABILITY})",
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE", help="write the XML to this file and print the changes"
    )
    add_json_option(parser, "the document, or with --diff the changes, as one JSON object")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, screen: Screen) -> int:
    _check_usage(args)
    if args.document is None:
        _write(None, _first_version(args), args.output, screen)
        return 0
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
    changes = (args.join, args.leave, args.host, args.endpoint, args.schema)
    return any(change is not None for change in changes)


def _check_usage(args: Namespace) -> None:
    joins, hosts = args.join is not None, args.host is not None
    is_new = args.document is None
    writes = args.xml or _alters(args)
    for option, given, fits, companions in (
        ("--hosts", args.hosts is not None, joins or hosts, "--join or --host"),
        ("--capability", args.capability is not None, joins, "--join"),
        ("--name", args.name is not None, is_new, "--schema, without a DOCUMENT"),
        ("--leave", args.leave is not None, not is_new, "a DOCUMENT"),
        ("--host", hosts, not is_new, "a DOCUMENT"),
        ("--diff", args.diff is not None, not is_new, "a DOCUMENT"),
        ("--diff", args.diff is not None, not _alters(args), "no change"),
        ("-o", args.output is not None, writes, "--xml or a change"),
    ):
        if given and not fits:
            raise QnsError(f"{option} goes with {companions}", remedy="see qns federation --help")
    if is_new and args.schema is None:
        raise QnsError(
            "there is no DOCUMENT", remedy=f"give {_SHIPPED}, a file, or begin one with --schema"
        )
    if (joins or hosts) and args.hosts is None:
        raise QnsError(
            f"{'--join' if joins else '--host'} without --hosts",
            remedy="name the classes, as in --hosts A,B, or --hosts '' for none",
        )
    if writes and args.as_json:
        raise QnsError("a document is written as XML, not as JSON", remedy="leave out --json")
    if args.document == args.diff == STDIN:
        raise QnsError("standard input cannot be both documents", remedy="name a file for one")


def _read(name: str, screen: Screen) -> Federation | None:
    """Returns a shipped document or the one in a file. Prints an error of it and returns None."""
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


def _first_version(args: Namespace) -> Federation:
    """Returns a new document for a schema, with the organisation of --join if there is one."""
    schema = load_schema(args.schema)
    empty = Federation(args.name or schema.name, schema, {})
    if args.join is None:
        return empty
    first = replace(_joining(args, empty), incarnation=1)
    others = _endpoints(args, first.name)
    if others:
        raise NameNotKnown("organisation", next(iter(others)), [first.name], place="--endpoint")
    return replace(empty, organisations={first.name: first})


def _next_version(args: Namespace, document: Federation) -> Federation:
    """Returns the document after the changes of the options, or the same one without a change."""
    if not _alters(args):
        return document
    changed = document
    if args.schema is not None:
        changed = replace(changed, schema=load_schema(args.schema))
    if args.leave is not None:
        changed = changed.without(args.leave)
    if args.join is not None:
        if args.join in document:
            raise FederationError(
                f"{args.join} is a member already", remedy="use --host to change its classes"
            )
        changed = changed.with_organisation(_joining(args, changed))
    if args.host is not None:
        classes = _classes(args, changed)
        if changed[args.host].hosts == classes:
            raise FederationError(
                f"{args.host} hosts these classes already", remedy="no new version is needed"
            )
        changed = changed.hosting(args.host, classes)
    changed = changed.with_endpoints(_endpoints(args, args.join))
    if (changed.schema, changed.organisations) == (document.schema, document.organisations):
        raise FederationError(
            "the document is like this already", remedy="no new version is needed"
        )
    return replace(changed, version=document.version + 1)


def _joining(args: Namespace, document: Federation) -> Organisation:
    capability = DEFAULT_CAPABILITY if args.capability is None else args.capability
    own = [each for each in args.endpoint or () if _named(each) is None]
    if len(own) > 1:
        raise QnsError(f"two endpoints for {args.join}", remedy="write NAME=URL for another member")
    endpoint = own[0] if own else ""
    return Organisation(args.join, _classes(args, document), endpoint, capability=capability)


def _endpoints(args: Namespace, joining: str | None) -> dict[str, str]:
    """Returns the endpoints that are given for members: name -> URL."""
    found: dict[str, str] = {}
    for each in args.endpoint or ():
        named = _named(each)
        if named is None and joining is None:
            raise QnsError(f"--endpoint {each} names no organisation", remedy=f"write NAME={each}")
        if named is not None:
            found[named[0]] = named[1]
    return found


def _named(text: str) -> tuple[str, str] | None:
    """Returns name and URL of `NAME=URL`; None if the text is only a URL."""
    name, equals, url = text.partition("=")
    return (name, url) if equals and "://" not in name else None


def _classes(args: Namespace, document: Federation) -> frozenset[str]:
    names = [name.strip() for name in args.hosts.split(",") if name.strip()]
    try:
        return frozenset(map(document.schema.data_class, names))
    except QnsError as problem:
        raise problem.at("--hosts") from None


def _write(old: Federation | None, new: Federation, output: str | None, screen: Screen) -> None:
    if new is not old:
        check_change(new, old)
    data = write_federation(new)
    if output is None:
        screen.raw(data.decode("utf-8"))
        return
    save(output, data)
    screen.line(f"version {new.version} of {visible(new.name)} is in {visible(output)}")
    if old is not None and new is not old:
        for change in changes(old, new):
            screen.line("  ", visible(change.text))


# -- printing ---------------------------------------------------------------------------------


def _compare(old: Federation, new: Federation, screen: Screen) -> None:
    found = changes(old, new)
    if screen.as_json:
        changed = [_change_as_json(change) for change in found]
        screen.json({"name": new.name, "from": old.version, "to": new.version, "changes": changed})
        return
    screen.line((visible(new.name), "bold"), f", from version {old.version} to {new.version}")
    for change in found:
        screen.line("  ", visible(change.text))
    if not found:
        screen.line("  only the version changes")


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
                "joined": each.incarnation,
                "capability": each.capability,
                "endpoint": each.endpoint or None,
                "tls": list(each.tls),
                "seals": list(each.seals),
                "hosts": _in_order(each, document),
            }
            for each in document.organisations.values()
        ],
    }


def _show(document: Federation, screen: Screen) -> None:
    classes = len(document.schema.classes)
    screen.line(
        (visible(document.name), "bold"),
        f", version {document.version}: {counted(len(document.organisations), 'organisation')}; "
        f"schema {document.schema.name}, {classes:,} class{'' if classes == 1 else 'es'}",
    )
    rows = [_row(each, document) for each in document.organisations.values()]
    for line in table_lines(_HEAD, rows, numbers=("joined", "capability")):
        screen.line(*line)


def _row(organisation: Organisation, document: Federation) -> list[str]:
    hosts = _in_order(organisation, document)
    every = len(hosts) == len(document.schema.classes)
    return [
        visible(organisation.name),
        str(organisation.incarnation),
        str(organisation.capability),
        organisation.endpoint or "none",
        "every class" if every else ", ".join(hosts) or "nothing",
    ]


def _in_order(organisation: Organisation, document: Federation) -> list[str]:
    return [path for path in document.schema.classes if path in organisation.hosts]
