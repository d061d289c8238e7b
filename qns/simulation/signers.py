"""Signers: sign every document of a simulated federation, and now and then rotate its root keys.

The keys come from the seed, and Ed25519 draws nothing, so that the same seed gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from random import Random
from typing import Final

from qns.federation.document import Federation
from qns.federation.ed25519 import SigningKey
from qns.federation.roots import Anchor, RootSet
from qns.federation.signatures import signed

_NEVER: Final = datetime(2100, 1, 1, tzinfo=UTC)
_MOST_KEYS: Final = 3


@dataclass(slots=True, eq=False)
class Signers:
    seed: int
    rotations: int = 0
    _chance: Random = field(init=False)
    _keys: list[SigningKey] = field(default_factory=list)
    """The keys of the newest root set."""
    _first: RootSet | None = None

    def __post_init__(self) -> None:
        self._chance = Random(f"signers {self.seed}")  # noqa: S311

    def sign(self, document: Federation) -> Federation:
        """Returns the document with the signatures that it needs, perhaps by another root set."""
        former: list[SigningKey] = []
        if not document.roots or self._chance.random() < 0.4:
            former, self._keys = self._keys, self._draw(len(document.roots) + 1)
            keys = tuple(key.public for key in self._keys)
            threshold = self._chance.randint(1, len(keys))
            roots = RootSet(len(document.roots) + 1, threshold, keys)
            self._first = self._first or roots
            self.rotations += roots.number > 1
            expires = document.expires or _NEVER
            document = replace(document, roots=(*document.roots, roots), expires=expires)
        for key in (*former, *self._keys):
            document = signed(document, key)
        return document

    def anchor(self, document: Federation) -> Anchor:
        """Returns the anchor of the first root set."""
        assert self._first is not None
        return Anchor(document.name, self._first)

    def _draw(self, number: int) -> list[SigningKey]:
        """Returns keys of which some may be those of the former set."""
        kept = [key for key in self._keys if self._chance.random() < 0.5][: _MOST_KEYS - 1]
        seed = f"root key {self.seed} {number}".encode()
        count = self._chance.randint(1, _MOST_KEYS - len(kept))
        return kept + [
            SigningKey.of(sha256(seed + bytes([each])).digest()) for each in range(count)
        ]


def draw_signers(seed: int) -> Signers | None:
    """Returns the signers of the federation in a third of the seeds."""
    signs = Random(f"signs {seed}").random() < 1 / 3  # noqa: S311
    return Signers(seed) if signs else None
