"""The hostile corpus: every case, by name."""

from __future__ import annotations

from typing import Final

from tests.soap.hostile import false_claims, invalid_values, unusual_soap, wrong_http, xml_attacks
from tests.soap.hostile.case import Case

CASES: Final[dict[str, Case]] = {
    case.name: case
    for group in (wrong_http, xml_attacks, unusual_soap, invalid_values, false_claims)
    for case in group.CASES
}
