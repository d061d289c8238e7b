"""Reachability: which organisations can reach which, as far as this peer knows (as in DACE).

Each organisation reports which others it cannot reach. Its epoch and a version order its reports,
so that the newest one counts whichever way it arrived. While an organisation can be reached, only
what it has reported here itself counts. There is no agreement between peers: a wrong guess costs a
detour, never an event.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from qns.edl.messages import ReachabilityRow
from qns.federation.document import Federation

_MOST_NAMES: Final = 2_000
"""The limit of names in the rows of one message; a row with more names goes alone."""


class Reachability:
    def __init__(self, me: str, epoch: int) -> None:
        self._me = me
        self._rows: dict[str, ReachabilityRow] = {me: ReachabilityRow(me, epoch, 0, ())}
        self._own: dict[str, ReachabilityRow] = {}
        """The newest row of each organisation that has reported here itself."""
        self._heard: dict[str, ReachabilityRow] = {}
        """The newest row of each organisation that others have sent."""
        self._sent: dict[str, dict[str, tuple[int, int]]] = {}
        """Peer -> organisation -> the version of its row that was sent to the peer."""
        self.version = 0
        """Changes whenever a row changes."""

    def reaches(self, one: str, other: str) -> bool:
        row = self._rows.get(one)
        return row is None or other not in row.unreachable

    def reachable(self, other: str) -> bool:
        """True if this peer can reach the other one."""
        return self.reaches(self._me, other)

    def is_connected(self, other: str) -> bool:
        """True if neither this peer nor the other one reports that it cannot reach the other."""
        return self.reaches(self._me, other) and self.reaches(other, self._me)

    def epoch(self, other: str) -> int:
        """Returns the newest known epoch of the other peer; 0 if none is known."""
        row = self._rows.get(other)
        return 0 if row is None else row.epoch

    def unreachable(self) -> tuple[str, ...]:
        """Returns the organisations that this peer cannot reach."""
        return self._rows[self._me].unreachable

    def begin_epoch(self, epoch: int) -> None:
        """Makes this peer's next reports newer than those of the epochs that it has forgotten."""
        row = self._rows[self._me]
        if row.epoch < epoch:
            self._rows[self._me] = row._replace(epoch=epoch, version=row.version + 1)
            self.version += 1

    def observe(self, other: str, *, reachable: bool) -> bool:
        """Notes whether this peer reached the other one; returns True if that is a change."""
        row = self._rows[self._me]
        if reachable != (other in row.unreachable):
            return False
        left = tuple(name for name in row.unreachable if name != other)
        now_unreachable = left if reachable else tuple(sorted((*left, other)))
        self._rows[self._me] = ReachabilityRow(
            self._me, row.epoch, row.version + 1, now_unreachable
        )
        heard = self._heard.get(other)
        if reachable and other in self._own:  # which counts again
            self._rows[other] = self._own[other]
        elif not reachable and heard is not None and heard[1:3] > self._rows[other][1:3]:
            self._rows[other] = heard  # the others will not send it again
        self.version += 1
        return True

    def update(self, sender: str, rows: Iterable[ReachabilityRow], members: Container[str]) -> None:
        """Takes over the rows that a member sends and that are newer than those known here.

        A row of another organisation counts only if that one has not reported here itself or cannot
        be reached, so that no member can replace its reports.
        """
        for row in rows:
            name = row.organisation
            sources = self._own if name == sender else self._heard
            known = sources.get(name)
            if name == self._me or name not in members or (known and known[1:3] >= row[1:3]):
                continue
            unreachable = dict.fromkeys(other for other in row.unreachable if other in members)
            row = sources[name] = row._replace(unreachable=tuple(unreachable))
            if name != sender:
                in_use = self._rows.get(name)
                is_known = name in self._own and self.reachable(name)
                if is_known or (in_use and in_use[1:3] >= row[1:3]):
                    continue
            self._rows[name] = row
            self.version += 1

    def apply_document(self, old: Federation, new: Federation) -> None:
        """Removes organisations that have left the federation."""
        for name in old.organisations:
            if name in new or name == self._me:
                continue
            self._rows.pop(name, None)
            self._own.pop(name, None)
            self._heard.pop(name, None)
            self._sent.pop(name, None)
            self.observe(name, reachable=True)

    def news_for(self, other: str, *, is_reply: bool = False) -> tuple[ReachabilityRow, ...]:
        """Returns rows that this peer has not sent to the other one yet: as many as fit into a
        message with the rest of its content.

        What a reply carries does not count as sent, because this peer does not notice if the reply
        is lost.
        """
        sent = self._sent.setdefault(other, {})
        news: list[ReachabilityRow] = []
        room = _MOST_NAMES
        for name, row in self._rows.items():
            if name == other or sent.get(name, (-1, -1)) >= row[1:3]:
                continue
            room -= 1 + len(row.unreachable)
            if news and room < 0:  # the next message carries it
                break
            news.append(row)
            if not is_reply:
                sent[name] = row[1:3]
        return tuple(news)

    def forget_sent(self, other: str) -> None:
        """Makes every row due again, because messages to the other peer may have been lost."""
        self._sent.pop(other, None)

    def repeat_own(self, other: str) -> None:
        """Makes the row of this peer due again, because a reply with it may have been lost."""
        self._sent.get(other, {}).pop(self._me, None)

    def rows(self) -> list[ReachabilityRow]:
        return [self._rows[name] for name in sorted(self._rows)]
