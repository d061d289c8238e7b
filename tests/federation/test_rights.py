"""Rights: who may read which class of whom, by the groups and rules of a document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import DuplicateId, NameNotKnown, NotAllowed, QnsError
from qns.federation.acceptance import may_accept
from qns.federation.changes import changes
from qns.federation.document import Federation, Organisation
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.rights import ReadRule
from qns.federation.schema_mapper import SchemaMapper
from qns.federation.shipped import AGENCIES_FEDERATION as OPEN

INSURERS = OPEN.with_group("insurers", ["INPS", "INAIL"])
RULES = [
    ReadRule("Enterprise/Holder", "insurers", "CoC"),
    ReadRule("Enterprise", "CoC", only=True),
]
CLOSED = INSURERS.with_rights(RULES)
DOCUMENT = """<federation xmlns="urn:qns:d2q:1" name="a" version="1">
<schema name="a"><class path="A"/><class path="A/B"/></schema>
<organisation name="P" joined="1"><hosts class="A"/></organisation>
<organisation name="Q" joined="1"/>
<group name="g"><member name="Q"/></group>
<rights>
<read class="a/b" by="g" from="P"/>
</rights></federation>"""


def may_read(document: Federation, reader: str, source: str) -> set[str]:
    return set(SchemaMapper(document).readable(reader, source))


def test_document_without_rights_lets_every_member_read_everything() -> None:
    assert may_read(INSURERS, "INPS", "CoC") == set(AGENCIES.classes)
    assert SchemaMapper(INSURERS).may_read("INPS", "CoC", "Enterprise")


def test_rights_deny_what_no_rule_grants() -> None:
    assert may_read(CLOSED, "INPS", "CoC") == {"Enterprise/Holder"}
    assert may_read(CLOSED, "INPS", "INAIL") == set()
    assert may_read(CLOSED.with_rights([]), "INPS", "CoC") == set()


def test_rule_for_a_class_grants_what_is_below_unless_only() -> None:
    every = ReadRule("Enterprise")
    assert may_read(OPEN.with_rights([every]), "INPS", "CoC") == set(AGENCIES.classes)
    only = replace(every, only=True)
    assert may_read(OPEN.with_rights([only]), "INPS", "CoC") == {"Enterprise"}


def test_group_can_be_reader_and_source() -> None:
    rule = ReadRule("Enterprise", "CoC", "insurers")
    document = INSURERS.with_rights([rule])
    assert may_read(document, "CoC", "INAIL") == set(AGENCIES.classes)
    assert may_read(document, "INAIL", "CoC") == set()


def test_organisation_always_reads_its_own_data() -> None:
    assert may_read(OPEN.with_rights([]), "CoC", "CoC") == set(AGENCIES.classes)


def test_rule_for_every_member_grants_nothing_to_a_group_that_is_named_like_none() -> None:
    assert may_read(OPEN.with_rights([ReadRule("Enterprise", "INPS")]), "INAIL", "CoC") == set()


def test_producers_have_only_the_classes_that_may_be_read() -> None:
    less = CLOSED.hosting("CoC", ["Enterprise"])
    assert SchemaMapper(CLOSED).producers(except_for="INPS") == {
        "CoC": {"Enterprise/Holder"},
        "INAIL": set(),
    }
    assert SchemaMapper(less).producers(except_for="INPS")["CoC"] == set()


def test_leaving_organisation_is_taken_out_of_groups_and_rules() -> None:
    left = CLOSED.without("CoC")
    assert left.rights == frozenset()
    assert left.groups == {"insurers": {"INPS", "INAIL"}}
    assert CLOSED.without("INPS").groups == {"insurers": {"INAIL"}}
    back = left.with_organisation(OPEN["CoC"])
    assert may_read(back, "INPS", "CoC") == set()


def test_document_remembers_the_classes_that_a_member_hosted() -> None:
    less = OPEN.hosting("CoC", ["Enterprise"])
    assert less["CoC"].hosted == {"Enterprise/Holder"}
    assert less.hosting("CoC", ["Enterprise/Holder"])["CoC"].hosted == {"Enterprise"}
    assert less.hosting("CoC", AGENCIES.classes)["CoC"].hosted == set()
    back = less.without("CoC").with_organisation(less["CoC"])
    assert back["CoC"].hosted == set()
    assert b'<hosted class="Enterprise/Holder"/>' in write_federation(less)
    assert read_federation(write_federation(less)) == less


def test_rights_are_written_in_a_fixed_order() -> None:
    assert write_federation(CLOSED).decode().partition("</organisation>\n  <group")[2] == (
        ' name="insurers">\n'
        '    <member name="INAIL"/>\n'
        '    <member name="INPS"/>\n'
        "  </group>\n"
        "  <rights>\n"
        '    <read class="Enterprise" only="true" by="CoC"/>\n'
        '    <read class="Enterprise/Holder" by="insurers" from="CoC"/>\n'
        "  </rights>\n"
        "</federation>\n"
    )
    assert b"<rights/>" in write_federation(OPEN.with_rights([]))
    assert b"rights" not in write_federation(INSURERS)


def test_valid_document_is_read() -> None:
    assert read_federation(DOCUMENT).rights == {ReadRule("A/B", "g", "P")}


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ('class="a/b"', 'class="a/c"', NameNotKnown, "line 7: rights: unknown class 'a/c' (did yo"),
        ('by="g"', 'by="h"', NameNotKnown, "line 7: rights: unknown organisation or group 'h'"),
        ('from="P"', 'from="p"', NameNotKnown, "(did you mean P"),
        ('<member name="Q"', '<member name="R"', NameNotKnown, "line 5: group 'g': unknown organ"),
        ('<group name="g"', '<group name="Q"', DuplicateId, "line 5: group 'Q': the name 'Q' is g"),
        ("<member", '<member name="Q"/><member', DuplicateId, "line 5: group 'g': 'Q' is named tw"),
        ("<read", '<read class="A/B" by="g" from="P"/>\n<read', DuplicateId, "line 8: rights: the"),
    ],
)
def test_invalid_rights_are_rejected_with_the_line(
    old: str, new: str, error: type[QnsError], message: str
) -> None:
    assert old in DOCUMENT
    with pytest.raises(error) as raised:
        read_federation(DOCUMENT.replace(old, new))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OPEN.with_group("CoC", ["INPS"]), "CoC is an organisation and a group"),
        (lambda: OPEN.with_group("g", ["IMPS"]), "group g: unknown organisation 'IMPS' (did you"),
        (lambda: OPEN.with_group("g", []), "unknown group 'g'"),
        (lambda: OPEN.with_rights([ReadRule("Holder")]), "rights: unknown class 'Holder'"),
        (lambda: OPEN.with_rights([ReadRule("enterprise")]), "rights: a rule for enterprise: wri"),
        (lambda: OPEN.with_rights([ReadRule("Enterprise", "IMPS")]), "(did you mean INPS?"),
        (lambda: CLOSED.with_group("insurers", []), "unknown organisation or group 'insurers'"),
    ],
)
def test_names_in_groups_and_rules_are_checked(
    make: Callable[[], Federation], message: str
) -> None:
    with pytest.raises(QnsError) as raised:
        make()
    assert message in str(raised.value)


def test_changes_of_groups_and_rights_are_reported() -> None:
    def texts(old: Federation, new: Federation) -> list[str]:
        return [change.text for change in changes(old, new)]

    assert texts(OPEN, INSURERS) == ["group insurers: is new, with INAIL, INPS"]
    swapped = INSURERS.with_group("insurers", ["INPS", "CoC"])
    assert texts(INSURERS, swapped) == ["group insurers: CoC added; INAIL removed"]
    assert texts(INSURERS, INSURERS.with_group("insurers", [])) == ["group insurers: is gone"]
    assert texts(INSURERS, CLOSED) == [
        "rights are in force from now on: nobody may read what no rule grants",
        "granted: CoC may read only Enterprise of every member",
        "granted: insurers may read Enterprise/Holder of CoC",
    ]
    assert texts(CLOSED, CLOSED.with_rights(RULES[1:])) == [
        "revoked: insurers may read Enterprise/Holder of CoC"
    ]
    assert texts(CLOSED, CLOSED.with_rights(None)) == [
        "no rights any more: every member may read everything"
    ]


def test_newcomer_cannot_change_rights_of_a_document_that_is_not_signed() -> None:
    joining = CLOSED.with_organisation(Organisation("ISTAT", frozenset()))
    may_accept(joining, CLOSED, "ISTAT", now=0.0)
    open_again = replace(joining, rights=None)
    with pytest.raises(NotAllowed, match="cannot change groups and rights"):
        may_accept(open_again, CLOSED, "ISTAT", now=0.0)
    may_accept(open_again, CLOSED, "CoC", now=0.0)


def test_organisation_cannot_join_under_the_name_of_a_group() -> None:
    with pytest.raises(DuplicateId, match="is an organisation and a group"):
        CLOSED.with_organisation(Organisation("insurers", frozenset()))


NAMES = ["P", "Q", "R", "S"]
CALLED = st.sampled_from(["", *NAMES, "g", "h"])
RULE = st.builds(ReadRule, st.sampled_from(WEATHER.classes), CALLED, CALLED, st.booleans())
GROUPS = st.fixed_dictionaries({name: st.frozensets(st.sampled_from(NAMES)) for name in "gh"})


@given(GROUPS, st.frozensets(RULE, max_size=5))
def test_rights_are_those_of_a_naive_reading(
    groups: dict[str, frozenset[str]], rules: frozenset[ReadRule]
) -> None:
    plain = Federation.of("weather", WEATHER, dict.fromkeys(NAMES, WEATHER.classes))
    mapper = SchemaMapper(replace(plain, groups=groups, rights=rules))

    def means(called: str, name: str) -> bool:
        return called in ("", name) or name in groups.get(called, ())

    for reader in NAMES:
        for source in NAMES:
            for path in WEATHER.classes:
                granted = reader == source or any(
                    means(rule.reader, reader)
                    and means(rule.source, source)
                    and (path == rule.data_class)
                    | (not rule.only and path.startswith(f"{rule.data_class}/"))
                    for rule in rules
                )
                assert mapper.may_read(reader, source, path) == granted
