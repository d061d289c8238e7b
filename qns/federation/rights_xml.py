"""Rights as XML: reads and writes the groups and rules of a federation document."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from qns.d2q.lexical import WHITE_SPACE
from qns.d2q.schema import Schema
from qns.d2q.xml import Element, child, line_of, qualified
from qns.errors import DuplicateId, NameNotKnown, QnsError, shorten
from qns.federation.rights import EVERYONE, Groups, ReadRule

GROUP: Final = qualified("group")
RIGHTS: Final = qualified("rights")
_MEMBER, _READ = qualified("member"), qualified("read")
_TRUE = ("true", "1")


def write_rights_into(root: Element, groups: Groups, rules: Iterable[ReadRule] | None) -> None:
    """Writes groups and rules in a fixed order; nothing if there are none."""
    for name, members in sorted(groups.items()):
        group = child(root, GROUP)
        group.set("name", name)
        for each in sorted(members):
            child(group, _MEMBER).set("name", each)
    if rules is None:
        return
    rights = child(root, RIGHTS)
    for rule in sorted(rules):
        read = child(rights, _READ)
        read.set("class", rule.data_class)
        if rule.only:
            read.set("only", "true")
        for attribute, name in (("by", rule.reader), ("from", rule.source)):
            if name != EVERYONE:
                read.set(attribute, name)


def groups_in(elements: Iterable[Element], members: Collection[str]) -> dict[str, frozenset[str]]:
    """Returns the groups in valid elements. Raises QnsError with the line."""
    found: dict[str, frozenset[str]] = {}
    for element in elements:
        node, name = element, element.get("name", "")
        try:
            if name in found or name in members:
                raise DuplicateId(f"the name {shorten(name)} is given twice", remedy="change one")
            named: set[str] = set()
            for node in element:
                each = node.get("name", "")
                if each in named:
                    raise DuplicateId(f"{shorten(each)} is named twice", remedy="remove one")
                if each not in members:
                    raise NameNotKnown("organisation", each, members)
                named.add(each)
        except QnsError as problem:
            raise problem.at(f"group {shorten(name)}").at_mark(line_of(node), None) from None
        found[name] = frozenset(named)
    return found


def rules_in(rights: Element, schema: Schema, names: Collection[str]) -> frozenset[ReadRule]:
    """Returns the rules in a valid element. Raises QnsError with the line."""
    known, found = {EVERYONE, *names}, set[ReadRule]()
    for element in rights:
        try:
            path = schema.data_class(element.get("class", "").strip(WHITE_SPACE))
            reader, source = element.get("by", EVERYONE), element.get("from", EVERYONE)
            for name in (reader, source):
                if name not in known:
                    raise NameNotKnown("organisation or group", name, names)
            only = element.get("only", "").strip(WHITE_SPACE) in _TRUE
            rule = ReadRule(path, reader, source, only)
            if rule in found:
                raise DuplicateId(f"the rule that {rule} is given twice", remedy="remove one")
        except QnsError as problem:
            raise problem.at("rights").at_mark(line_of(element), None) from None
        found.add(rule)
    return frozenset(found)
