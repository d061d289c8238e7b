"""`qns federation show` and `diff`: print a document, or what a later version changes."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

from qns.cli.documents.files import (
    SHIPPED,
    add_action,
    add_document,
    read_document,
    write_document,
)
from qns.cli.documents.rights import rights_as_json
from qns.cli.inputs import STDIN
from qns.cli.options import Commands, add_json_option
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.table_layout import table_lines
from qns.cli.wording import counted
from qns.errors import QnsError
from qns.federation.changes import Change, changes
from qns.federation.document import Federation, Organisation
from qns.federation.roots_xml import write_expires
from qns.federation.signatures import progress

_SHOW: Final = f"""
Shows a federation document: the organisations of a federation and the classes that each of
them hosts. DOCUMENT is an .xml file, or one of the shipped documents {SHIPPED};
- is standard input. --xml prints the document as it is. The word show can be left out.
"""
_SHOW_EXAMPLES = ("qns federation show weather-partial", "qns federation agencies --xml")
_DIFF: Final = """
Prints what a later version changes. A version that may not follow the older one is refused.
"""
_DIFF_EXAMPLES = (
    "qns federation remove agencies CoC | qns federation diff agencies -",
    "qns federation remove agencies CoC | qns federation diff agencies - --json",
)
_HEAD = ("organisation", "joined", "capability", "endpoint", "hosts")


def add(actions: Commands) -> None:
    showing = add_action(actions, "show", "show a document", _SHOW, _SHOW_EXAMPLES, show)
    add_document(showing)
    showing.add_argument("--xml", action="store_true", help="print the document as XML")
    showing.add_argument(
        "-o", dest="output", metavar="FILE", help="with --xml: write it to this file"
    )
    add_json_option(showing, "the document as one JSON object")
    comparing = add_action(actions, "diff", "compare two versions", _DIFF, _DIFF_EXAMPLES, diff)
    add_document(comparing)
    comparing.add_argument("new", metavar="NEW", help="the later version")
    add_json_option(comparing, "the changes as one JSON object")


def show(args: Namespace, screen: Screen) -> int:
    if args.xml and args.as_json:
        raise QnsError("a document is written as XML, not as JSON", remedy="leave out --json")
    if args.output is not None and not args.xml:
        raise QnsError("-o goes with --xml", remedy="see qns federation show --help")
    document = read_document(args.document)
    if args.xml:
        write_document(document, document, args.output, screen)
    elif screen.as_json:
        screen.json(_as_json(document))
    else:
        _show(document, screen)
    return 0


def diff(args: Namespace, screen: Screen) -> int:
    if args.document == args.new == STDIN:
        raise QnsError("standard input cannot be both documents", remedy="name a file for one")
    old, new = read_document(args.document), read_document(args.new)
    found = changes(old, new)
    if screen.as_json:
        changed = [_change_as_json(change) for change in found]
        screen.json({"name": new.name, "from": old.version, "to": new.version, "changes": changed})
        return 0
    screen.line((visible(new.name), "bold"), f", from version {old.version} to {new.version}")
    for change in found:
        screen.line("  ", visible(change.text))
    if not found:
        screen.line("  only the version changes")
    return 0


def _change_as_json(change: Change) -> dict[str, Any]:
    return {
        "change": change.kind.value,
        "organisation": change.organisation or None,
        "classes": list(change.classes),
        "text": change.text,
    }


def _as_json(document: Federation) -> dict[str, Any]:
    expires, roots = document.expires, document.root_set
    return {
        "name": document.name,
        "version": document.version,
        "schema": document.schema.name,
        "expires": None if expires is None else write_expires(expires),
        "root_set": None
        if roots is None
        else {
            "number": roots.number,
            "threshold": roots.threshold,
            "keys": [key.fingerprint for key in roots.keys],
        },
        "organisations": [
            {
                "name": each.name,
                "joined": each.incarnation,
                "capability": each.capability,
                "endpoint": each.endpoint or None,
                "tls": list(each.tls),
                "seals": list(each.seals),
                "hosts": _in_order(each, document),
                "hosted": sorted(each.hosted),
            }
            for each in document.organisations.values()
        ],
        **rights_as_json(document),
    }


def _show(document: Federation, screen: Screen) -> None:
    classes = len(document.schema.classes)
    screen.line(
        (visible(document.name), "bold"),
        f", version {document.version}: {counted(len(document.organisations), 'organisation')}; "
        f"schema {document.schema.name}, {classes:,} class{'' if classes == 1 else 'es'}",
    )
    roots = document.root_set
    if roots is not None and document.expires is not None:
        signed = progress(document)[-1].valid
        screen.line(
            f"expires at {write_expires(document.expires)}; root set {roots.number}, "
            f"signed by {signed} of {roots.threshold} keys"
        )
    if document.groups or document.rights is not None:
        rules = "no rights" if document.rights is None else counted(len(document.rights), "rule")
        groups = counted(len(document.groups), "group")
        screen.line(f"rights: {groups}, {rules}; qns federation rights shows them")
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
