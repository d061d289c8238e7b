"""The hostile corpus: every case, by name."""

from __future__ import annotations

from typing import Final

from tests.soap.hostile import lies, not_http, odd_soap, typed_nonsense, xml_attacks
from tests.soap.hostile.case import Case

CASES: Final[dict[str, Case]] = {
    case.name: case
    for group in (not_http, xml_attacks, odd_soap, typed_nonsense, lies)
    for case in group.CASES
}
