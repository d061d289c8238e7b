"""`qns federation group`, `grant`, `revoke` and `rights`: who may read which class of whom."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any, Final

from qns.cli.documents.files import add_action, add_document, read_document
from qns.cli.documents.members import add_change
from qns.cli.options import Commands, add_json_option
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.cli.table_layout import table_lines
from qns.errors import FederationError, NameNotKnown
from qns.federation.document import Federation
from qns.federation.rights import EVERYONE, ReadRule
from qns.federation.schema_mapper import SchemaMapper

_RIGHTS: Final = """
Shows which hosted classes each organisation may read of which other, by the rules of the document.
A document without rules lets every member read everything.
"""
_EXAMPLES = (
    "qns federation rights federation.xml",
    "qns federation rights federation.xml --to INPS --from CoC",
)
_HEAD = ("organisation", "of", "may read")


def add(actions: Commands) -> None:
    grouping = add_change(
        actions,
        "group",
        "set the members of a group",
        "Sets the members of a group, which rules about rights may name; '' removes the group.",
        "qns federation group federation.xml insurers --members INPS,INAIL",
        _grouped,
    )
    grouping.add_argument("name", metavar="NAME", help="the group")
    grouping.add_argument(
        "--members", metavar="A,B", required=True, help="its members; '' for none"
    )
    granting = add_change(
        actions,
        "grant",
        "let organisations read a class",
        "Adds a rule: an organisation or a group may read the events of a class, and of those\n"
        "below it. The first rule puts rights in force: nobody may read what no rule grants.",
        "qns federation grant federation.xml Enterprise/Holder --to insurers --from CoC",
        _granted,
    )
    _add_rule(granting)
    revoking = add_change(
        actions,
        "revoke",
        "remove a rule",
        "Removes a rule, given as it was granted. Without CLASS it removes all rules, and the\n"
        "rights themselves: every member may read everything again.",
        "qns federation revoke federation.xml Enterprise/Holder --to insurers --from CoC",
        _revoked,
    )
    _add_rule(revoking, is_optional=True)
    showing = add_action(
        actions, "rights", "show who may read what of whom", _RIGHTS, _EXAMPLES, _show
    )
    add_document(showing)
    showing.add_argument("--to", metavar="NAME", help="only what this organisation may read")
    showing.add_argument("--from", dest="source", metavar="NAME", help="only of this organisation")
    add_json_option(showing, "one JSON object: the groups, the rules and the matrix")


def _add_rule(parser: ArgumentParser, *, is_optional: bool = False) -> None:
    optional: dict[str, Any] = {"nargs": "?"} if is_optional else {}
    parser.add_argument("data_class", metavar="CLASS", help="the class", **optional)
    parser.add_argument(
        "--to",
        metavar="NAME",
        default=EVERYONE,
        help="the organisation or group that may read (default: every member)",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="NAME",
        default=EVERYONE,
        help="the organisation or group that publishes (default: every member)",
    )
    parser.add_argument("--only", action="store_true", help="without the classes below")


def _grouped(args: Namespace, document: Federation) -> Federation:
    names = [name.strip() for name in args.members.split(",") if name.strip()]
    if not names:
        using = sorted(rule for rule in document.rights or () if rule.names(args.name))
        if using:
            raise FederationError(
                f"a rule names the group: {using[0]}", remedy="revoke it first, or change the group"
            )
    return document.with_group(args.name, names)


def _granted(args: Namespace, document: Federation) -> Federation:
    return document.with_rights((document.rights or frozenset()) | {_rule(args, document)})


def _revoked(args: Namespace, document: Federation) -> Federation:
    if args.data_class is None:
        return document.with_rights(None)
    rule, rights = _rule(args, document), document.rights or frozenset()
    if rule not in rights:
        known = [str(each) for each in rights]
        raise NameNotKnown("rule", str(rule), known, problem=f"there is no rule that {rule}")
    return document.with_rights(rights - {rule})


def _rule(args: Namespace, document: Federation) -> ReadRule:
    path = document.schema.data_class(args.data_class)
    return ReadRule(path, args.to, args.source, args.only)


# --- the matrix -----------------------------------------------------------------------------------


def _show(args: Namespace, screen: Screen) -> int:
    document = read_document(args.document)
    for name in (args.to, args.source):
        if name is not None and name not in document:
            raise NameNotKnown("organisation", name, document.organisations)
    rows = [
        (reader, source, classes)
        for reader in ([args.to] if args.to else document.organisations)
        for source, classes in SchemaMapper(document).producers(except_for=reader).items()
        if args.source in (None, source) and document[source].hosts
    ]
    if screen.as_json:
        screen.json(_as_json(document, rows))
        return 0
    for name, members in sorted(document.groups.items()):
        screen.line(f"group {visible(name)}: {visible(', '.join(sorted(members)) or 'nobody')}")
    if document.rights is None:
        screen.line("no rights: every member may read everything")
    for rule in sorted(document.rights or ()):
        screen.line(visible(str(rule)))
    cells = [
        [visible(reader), visible(source), _words(document, source, classes)]
        for reader, source, classes in rows
    ]
    for line in table_lines(_HEAD, cells, numbers=()):
        screen.line(*line)
    return 0


def _words(document: Federation, source: str, classes: frozenset[str]) -> str:
    if classes == document[source].hosts:
        return "all that it hosts"
    return ", ".join(sorted(classes)) or "nothing"


def _as_json(document: Federation, rows: list[tuple[str, str, frozenset[str]]]) -> dict[str, Any]:
    return {
        "name": document.name,
        "version": document.version,
        **rights_as_json(document),
        "may_read": [
            {"organisation": reader, "of": source, "classes": sorted(classes)}
            for reader, source, classes in rows
        ],
    }


def rights_as_json(document: Federation) -> dict[str, Any]:
    """Returns the groups and the rules of a document; the rules are None if it has no rights."""
    rules = None
    if document.rights is not None:
        rules = [
            {
                "class": rule.data_class,
                "only": rule.only,
                "to": rule.reader or None,
                "from": rule.source or None,
            }
            for rule in sorted(document.rights)
        ]
    groups = {name: sorted(members) for name, members in sorted(document.groups.items())}
    return {"groups": groups, "rules": rules}
