"""Bugs of the quotas: what a member gone bad may take from others."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_Q = partial(Mutant, file="qns/runtime/quotas.py", kind="quotas")
_S = partial(Mutant, file="qns/runtime/sequencer.py", kind="quotas")

QUOTAS = (
    _Q(
        name="requests-of-a-member-unbounded",
        breaks="A member sends any number of requests.",
        old="        buckets[REQUESTS].take(now, 1)\n",
        new="",
    ),
    _Q(
        name="bytes-of-a-member-unbounded",
        breaks="A member sends any number of bytes.",
        old="        buckets[BYTES].take(now, size)\n",
        new="",
    ),
    _Q(
        name="time-of-a-member-unbounded",
        breaks="A member with costly requests takes all the time of a peer.",
        old="            account.buckets[CPU].take(self.now(), seconds)\n",
        new="            pass\n",
    ),
    _Q(
        name="bucket-never-refills",
        breaks="A member that has used up a quota is refused for ever.",
        old="self._level + (now - self._at) * self.rate",
        new="self._level",
    ),
    _Q(
        name="debt-unbounded",
        breaks="One large request locks a member out for a long time.",
        old="        self._level = max(-self._most, self._level - amount)",
        new="        self._level = self._level - amount",
    ),
    _Q(
        name="strangers-have-accounts",
        breaks="Invented names fill the memory.",
        old="        if account is None and member in self.members():",
        new="        if account is None:",
    ),
    _S(
        name="requests-of-a-member-at-once",
        breaks="A member with many connections delays others by all its requests.",
        old="        if waiting is None:",
        new="        if True:",
    ),
    _S(
        name="gone-client-blocks-its-member",
        breaks="A client that disconnects while it waits stops the requests of its member.",
        old="            if not turn.cancelled():\n",
        new="            if True:\n",
    ),
    Mutant(
        name="quotas-checked-after-reading",
        file="qns/runtime/posted_call.py",
        kind="quotas",
        breaks="The body of a request beyond a quota is read.",
        old="        if self.member is not None and not self._is_within_quotas(self.member):",
        new="        if False:",
    ),
    Mutant(
        name="connections-of-a-member-unbounded",
        file="qns/runtime/http.py",
        kind="quotas",
        breaks="One member takes the connections of all.",
        old="        if len(its) < MOST_OF_MEMBER:",
        new="        if True:",
    ),
    Mutant(
        name="asked-pause-ignored",
        file="qns/edl/link.py",
        kind="quotas",
        breaks="A peer repeats a call although the other has said when it may.",
        old="        if pause_s > 0:\n            self.rest_until",
        new="        if False:\n            self.rest_until",
    ),
    Mutant(
        name="asked-pause-cut-short",
        file="qns/edl/link.py",
        kind="quotas",
        breaks="A message of the other peer ends the pause for which it has asked.",
        old="        if self.state is LinkState.RESTING and not self.is_pause_asked:",
        new="        if self.state is LinkState.RESTING:",
    ),
    Mutant(
        name="terms-of-a-view-unbounded",
        file="qns/edl/external_merge_table.py",
        kind="quotas",
        breaks="A view of few elements with many terms fills the memory.",
        old="        self._check_terms(consumer, removed, fresh)\n",
        new="",
    ),
    Mutant(
        name="owed-bytes-unbounded",
        file="qns/edl/outbound_stream.py",
        kind="quotas",
        breaks="The limit of bytes that are owed to a consumer drops nothing.",
        old="        while self.owed_bytes > most_bytes and self.owed_events > 1:",
        new="        while False:",
    ),
    Mutant(
        name="newest-event-dropped",
        file="qns/edl/outbound_stream.py",
        kind="quotas",
        breaks="An event that is larger than the limit of owed bytes is never sent.",
        old=" and self.owed_events > 1:",
        new=":",
    ),
    Mutant(
        name="handshakes-in-a-second-unbounded",
        file="qns/runtime/tls_listener.py",
        kind="quotas",
        breaks="An address that connects without end takes the time of a peer with handshakes.",
        old="        if bucket.wait_s(now):",
        new="        if False:",
    ),
)
