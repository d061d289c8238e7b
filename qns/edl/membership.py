"""Membership: who can reach whom, as far as this peer knows (weak, as in DACE).

Each organisation says whom it cannot reach; what it says is numbered by its epoch and a counter,
so that the newer word wins whatever way it came. Nobody agrees on anything: a wrong guess costs a
detour, never an event.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from qns.edl.messages import ReachabilityRow


class Membership:
    def __init__(self, me: str, epoch: int) -> None:
        self._me = me
        self._rows: dict[str, ReachabilityRow] = {me: ReachabilityRow(me, epoch, 0, ())}
        self._told: dict[str, dict[str, tuple[int, int]]] = {}
        """To whom which version of whose row was sent: traffic carries only news."""
        self.version = 0
        """Changes whenever anything here does."""

    def reaches(self, one: str, other: str) -> bool:
        row = self._rows.get(one)
        return row is None or other not in row.unreachable

    def reachable(self, other: str) -> bool:
        return self.reaches(self._me, other)

    def saw(self, other: str, *, reachable: bool) -> bool:
        """What this peer itself saw; whether it is news."""
        row = self._rows[self._me]
        if reachable != (other in row.unreachable):
            return False
        left = tuple(name for name in row.unreachable if name != other)
        now_unreachable = left if reachable else tuple(sorted((*left, other)))
        self._rows[self._me] = ReachabilityRow(
            self._me, row.epoch, row.version + 1, now_unreachable
        )
        self.version += 1
        return True

    def heard(self, rows: Iterable[ReachabilityRow], members: Container[str]) -> None:
        for row in rows:
            name, known = row.organisation, self._rows.get(row.organisation)
            if name == self._me or name not in members or (known and known[1:3] >= row[1:3]):
                continue
            unreachable = tuple(other for other in row.unreachable if other in members)
            self._rows[name] = row._replace(unreachable=unreachable)
            self.version += 1

    def forget(self, gone: Iterable[str]) -> None:
        """Who is not a member any more is not spoken of."""
        for name in gone:
            if name == self._me:
                continue
            self._rows.pop(name, None)
            self._told.pop(name, None)
            self.saw(name, reachable=True)

    def news_for(self, other: str) -> tuple[ReachabilityRow, ...]:
        """What the other may not have heard from this peer yet."""
        told = self._told.setdefault(other, {})
        news = [
            row
            for name, row in self._rows.items()
            if name != other and told.get(name, (-1, -1)) < row[1:3]
        ]
        for row in news:
            told[row.organisation] = row[1:3]
        return tuple(news)

    def missed(self, other: str) -> None:
        """What was said to the other may have been lost: it will be said again."""
        self._told.pop(other, None)

    def rows(self) -> list[ReachabilityRow]:
        return [self._rows[name] for name in sorted(self._rows)]
