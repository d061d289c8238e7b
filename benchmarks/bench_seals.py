"""Measures seals: what sealing and checking costs each notification, by notifications in a commit.

The baseline is **one signature for each notification**, without a tree: over the bytes of the
event, checked by the receiver. The limit is hashing these bytes once, which any seal needs on both
sides. Notifications carry an event of about 1 KB.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from time import time
from typing import Any

from benchmarks.report import micro, table, times
from benchmarks.timing import OnProgress, interleaved, medians
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Entry, Notification
from qns.edl.seals import Sealer, Seals
from qns.federation.document import Federation
from qns.federation.new_certificate import ALGORITHMS, new_certificate
from qns.federation.seal_keys import FileSigner, read_seal_key

NUMBERS = (1, 10, 100)
"""Notifications in a commit."""
_EVENT_BYTES = 1_000
_AIM_S = 25e-6
"""The aim for checking a notification, with ten in a commit."""


class Federated:
    """A producer and a consumer that know each other's seal certificates."""

    def __init__(self, algorithm: str) -> None:
        made = new_certificate("P", time(), algorithm=algorithm, is_tls=False)
        document = Federation.of("bench", WEATHER, dict.fromkeys(("P", "C"), ("Report",)))
        document = document.with_certificates("P", seals=(made.certificate,))
        self.signer = FileSigner.read(made.certificate, made.key)
        self.sealer = Sealer("P", self.signer)
        self.document, self.key = document, read_seal_key(made.certificate)

    def seal(self, items: Sequence[Notification]) -> list[Notification]:
        """Seals the notifications of one commit."""
        sealed = self.sealer.seal(self.document.name, [(item, "C") for item in items])
        return [item for item in sealed if isinstance(item, Notification)]

    def check(self, items: Sequence[Notification]) -> None:
        """Checks notifications as a receiver that has seen none of their seals."""
        seals, now = Seals("C", self.document, read_seal_key), time()
        for item in items:
            assert seals.flaw(now, "P", item) is None

    def sign_each(self, items: Sequence[Notification]) -> list[bytes]:
        return [self.signer.sign(item.xml) for item in items]

    def check_each(self, items: Sequence[Notification], signatures: Sequence[bytes]) -> None:
        for item, signature in zip(items, signatures, strict=True):
            assert self.key.verify(signature, item.xml)


def notifications(count: int) -> list[Notification]:
    xml = b"<event>" + b"x" * (_EVENT_BYTES - 15) + b"</event>"
    return [
        Notification("P", 1, 1, n, f"e{n}", xml, 0.0, Entry("C", 1, 1, n, 0), ("P",))
        for n in range(1, count + 1)
    ]


def run(quick: bool, on_progress: OnProgress) -> list[dict[str, Any]]:
    count, repeats = (200, 3) if quick else (2_000, 7)
    rows = []
    for algorithm in ALGORITHMS:
        on_progress(f"seals with {algorithm}")
        rows += _measured(Federated(algorithm), algorithm, notifications(count), repeats)
    return rows


def _measured(
    federated: Federated, algorithm: str, items: list[Notification], repeats: int
) -> list[dict[str, Any]]:
    signatures = federated.sign_each(items)
    works = {
        "sign each": lambda: federated.sign_each(items),
        "check each": lambda: federated.check_each(items, signatures),
        "hash": lambda: [sha256(item.xml).digest() for item in items],
    }
    for number in NUMBERS:
        commits = [items[at : at + number] for at in range(0, len(items), number)]
        sealed = [item for commit in commits for item in federated.seal(commit)]
        works[f"seal {number}"] = lambda commits=commits: list(map(federated.seal, commits))  # type: ignore[misc]
        works[f"check {number}"] = lambda sealed=sealed: federated.check(sealed)  # type: ignore[misc]
    seconds = {
        name: each / len(items) for name, each in medians(interleaved(works, repeats)).items()
    }
    return [
        {
            "algorithm": algorithm,
            "notifications": number,
            "seal_s": seconds[f"seal {number}"],
            "check_s": seconds[f"check {number}"],
            "sign_each_s": seconds["sign each"],
            "check_each_s": seconds["check each"],
            "hash_s": seconds["hash"],
        }
        for number in NUMBERS
    ]


def text(rows: list[dict[str, Any]]) -> str:
    cells = [
        [
            f"{row['algorithm']}, {row['notifications']} in a commit",
            micro(row["seal_s"]),
            micro(row["sign_each_s"]),
            times(row["seal_s"] / row["sign_each_s"]),
            micro(row["check_s"]),
            micro(row["check_each_s"]),
            times(row["check_s"] / row["check_each_s"]),
        ]
        for row in rows
    ]
    headers = ["a notification", "seal", "sign each", "ratio", "check", "check each", "ratio"]
    (ten,) = (r for r in rows if (r["algorithm"], r["notifications"]) == (ALGORITHMS[0], 10))
    reached = "reached" if ten["check_s"] <= _AIM_S else "not reached"
    return (
        "# Seals\n\nCPU time of one notification with an event of 1 KB; medians. *Each* is the "
        "baseline: one signature for each notification. The limit, hashing the event once, is "
        f"{micro(ten['hash_s'])}.\n\nAim: checking at most {micro(_AIM_S)} with ten in a commit "
        f"({ALGORITHMS[0]}): {reached}.\n\n"
        f"{table(headers, cells)}"
    )
