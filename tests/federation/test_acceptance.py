"""Which federation document may replace the one in force, and from whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.d2q.shipped import WEATHER
from qns.errors import FederationError, QnsError
from qns.federation.acceptance import OPERATOR, may_accept
from qns.federation.changes import MOST_VERSIONS_AHEAD
from qns.federation.document import Federation, Organisation
from qns.federation.shipped import AGENCIES_FEDERATION as OLD

ISTAT = Organisation("ISTAT", frozenset(["Enterprise"]), "http://127.0.0.1:9/")
JOINED = OLD.with_organisation(ISTAT)


def at(endpoints: dict[str, str], version: int = 2) -> Federation:
    organisations = {
        name: replace(each, endpoint=endpoints.get(name, ""))
        for name, each in OLD.organisations.items()
    }
    return replace(OLD, organisations=organisations, version=version)


@pytest.mark.parametrize("sender", [OPERATOR, "INPS", "CoC"])
def test_operator_and_members_may_give_any_later_version(sender: str) -> None:
    may_accept(OLD.without("CoC"), OLD, sender, now=0.0)
    may_accept(JOINED.hosting("INPS", []), OLD, sender, now=0.0)


def test_newcomer_may_give_the_version_with_which_it_joins() -> None:
    may_accept(JOINED, OLD, "ISTAT", now=0.0)
    may_accept(
        JOINED.with_organisation(replace(ISTAT, name="ACI", endpoint="")), OLD, "ISTAT", now=0.0
    )


@pytest.mark.parametrize(
    ("new", "sender", "said"),
    [
        (
            JOINED.hosting("INPS", []),
            "ISTAT",
            "ISTAT is not a member in version 1 of agencies and "
            "cannot change INPS (give version 3 to a member",
        ),
        (JOINED.without("CoC"), "ISTAT", "cannot change CoC"),
        (JOINED, "ACI", "cannot give a document that does not name it"),
        (OLD.without("CoC"), "ISTAT", "cannot change CoC"),
        (replace(OLD, version=1), "INPS", "another document of version 1 is in force"),
        (Federation.of("weather", WEATHER, {}), "", "another document of version 1"),
        (
            at({"INPS": "http://a:1/", "CoC": "http://A:1"}),
            "",
            "CoC and INPS have the same "
            "address a:1 (give each organisation an endpoint of its own)",
        ),
        (at({"INPS": "http://a/", "INAIL": "http://a:80/"}), "", "INAIL and INPS have the same"),
    ],
    ids=[
        "newcomer changes a member",
        "newcomer removes a member",
        "stranger",
        "leaver",
        "same version",
        "other federation of the same version",
        "one address",
        "one default port",
    ],
)
def test_document_is_refused_with_a_reason(new: Federation, sender: str, said: str) -> None:
    with pytest.raises(QnsError) as caught:
        may_accept(new, OLD, sender, now=0.0)
    assert said in str(caught.value)


def test_first_document_of_a_peer_is_checked_too() -> None:
    may_accept(OLD, None, now=0.0)
    with pytest.raises(QnsError, match="have the same address"):
        may_accept(at({"INPS": "http://a:1/", "CoC": "http://a:1/"}), None, now=0.0)


def test_members_behind_one_proxy_have_different_paths() -> None:
    may_accept(at({"INPS": "http://a:1/inps/", "CoC": "http://a:1/coc/"}), None, now=0.0)
    with pytest.raises(QnsError, match="have the same address a:1/coc"):
        may_accept(at({"INPS": "http://a:1/coc", "CoC": "http://a:1/coc/"}), None, now=0.0)


@pytest.mark.parametrize("sender", [OPERATOR, "INPS"])
def test_version_that_is_too_far_ahead_is_refused_from_everybody(sender: str) -> None:
    old = OLD
    ahead = replace(old, version=old.version + MOST_VERSIONS_AHEAD)
    may_accept(ahead, old, sender, now=0.0)
    too_far = replace(old, version=ahead.version + 1)
    with pytest.raises(FederationError, match=r"1,000,000 ahead of version 1 .*makes version 2"):
        may_accept(too_far, old, sender, now=0.0)


def test_first_document_of_a_peer_can_have_any_version() -> None:
    may_accept(replace(OLD, version=20_301_231), None, now=0.0)
