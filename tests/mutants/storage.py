"""Bugs of stores, files and the driver."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutant import Mutant

_S = partial(Mutant, file="qns/store/sqlite.py")
_M = partial(Mutant, file="qns/store/memory.py")
_F = partial(Mutant, file="qns/store/files.py")
_L = partial(Mutant, file="qns/store/lineage.py")
_C = partial(Mutant, file="qns/store/copies.py")
_D = partial(Mutant, file="qns/runtime/driver.py")
_Q = partial(Mutant, file="qns/peer/turn_queue.py")

STORAGE = (
    _F(
        name="mark-file-not-synced",
        kind="lineage",
        breaks="A power cut after the rename can leave an empty mark.",
        old="            os.fsync(file.fileno())\n",
        new="",
    ),
    _F(
        name="mark-folder-not-synced",
        kind="lineage",
        breaks="A power cut can undo the rename of a mark or a backup.",
        old="        _sync(new.parent)\n",
        new="",
    ),
    _F(
        name="mark-written-in-place",
        kind="lineage",
        breaks="A crash while a mark is written leaves half of it.",
        old='    new = path.with_name(path.name + ".new")',
        new="    new = path",
    ),
    _L(
        name="half-mark-accepted",
        kind="lineage",
        breaks="An incomplete lineage file is accepted.",
        old='    if lines[0] != _FIRST_LINE or lines[-2:] != [_LAST_LINE, ""]:',
        new="    if lines[0] != _FIRST_LINE:",
    ),
    _C(
        name="backup-not-synced",
        kind="lineage",
        breaks="A power cut can leave a backup that is incomplete.",
        old="        sync_file(partial)\n",
        new="",
    ),
    _C(
        name="old-log-applied-to-restored-store",
        kind="lineage",
        breaks="The log of the old store is applied to a restored one.",
        old="            _remove(path, _COMPANIONS)  # SQLite would",
        new="            pass  # SQLite would",
    ),
    _S(
        name="rollback-forgotten",
        kind="commits",
        breaks="The rows of a failed transaction are committed with the next one.",
        old="            if self._unusable_reason is None:\n                self._roll_back()",
        new="            pass",
    ),
    _S(
        name="lock-kept-after-error",
        kind="commits",
        breaks="After an error nobody can use the store.",
        old="            self._lock.release()\n            raise fault from None",
        new="            raise fault from None",
    ),
    _S(
        name="reserve-used-up",
        kind="commits",
        breaks="A file grows into the reserve of a full disk.",
        old="        if not may_grow and self._page_count() > pages:",
        new="        if False:",
    ),
    _S(
        name="unknown-disk-trusted",
        kind="commits",
        breaks="A store goes on after an error that leaves the disk unknown.",
        old="        if leaves_disk_unknown(error):",
        new="        if False:",
    ),
    _S(
        name="rows-read-once",
        kind="recovery after a crash",
        breaks="Only the first 256 rows of a table are recovered.",
        old="            batch = self._read(sql.next_rows, batch[-1][: table.key])",
        new="            return",
    ),
    _M(
        name="snapshot-changes-later",
        kind="commits",
        breaks="A snapshot of a simulated disk changes with the store.",
        old="            self._tables[table] = self._tables[table].copy()\n",
        new="",
    ),
    _Q(
        name="effects-released-before-commit",
        kind="commits",
        breaks="The effects of turns that began during a commit leave with it.",
        old='        assert group is not None, "a commit is under way"\n',
        new='        assert group is not None, "a commit is under way"\n'
        "        ahead = [turn._replace(inputs=[]) for turn in self._begun.turns]\n"
        "        for turn in ahead:\n"
        "            turn.effects.answers.clear()\n"
        "        group.turns.extend(ahead)\n",
    ),
    _Q(
        name="group-commit-keeps-last-turn",
        kind="commits",
        breaks="A group commit writes only its last turn.",
        old="            self._begun.transaction.add(begun.transaction)",
        new="            self._begun.transaction = begun.transaction",
    ),
    _Q(
        name="turns-reordered",
        kind="commits",
        breaks="The inputs that wait are handled in the wrong order.",
        old="[self._waiting.popleft() for _ in range(many)]",
        new="[self._waiting.pop() for _ in range(many)]",
    ),
    _Q(
        name="last-inputs-wait-for-others",
        kind="commits",
        breaks="A few inputs that wait get a turn only when others arrive.",
        old="        if self.is_committing and len(self._waiting) < _LEAST_TO_WORK_AHEAD:",
        new="        if len(self._waiting) < _LEAST_TO_WORK_AHEAD:",
    ),
    _D(
        name="effects-of-last-turn-only",
        kind="commits",
        breaks="A group commit releases only the effects of its last turn.",
        old="        for inputs, effects, now in group.turns:",
        new="        for inputs, effects, now in group.turns[-1:]:",
    ),
    _D(
        name="effects-released-when-commit-fails",
        kind="commits",
        breaks="The effects of a failed commit leave.",
        old="        self.on_commit(commit.result())\n",
        new="",
    ),
    _D(
        name="answer-for-former-gateway-accepted",
        kind="commits",
        breaks="An answer to a request of a former gateway goes to the new one.",
        old="        if generation == self._generation and not self.is_stopping:",
        new="        if not self.is_stopping:",
    ),
    _D(
        name="lost-inputs-not-answered",
        kind="commits",
        breaks="Callers whose turn was not committed wait for ever.",
        old="        for each in lost:\n            resolve(each, error)\n",
        new="",
    ),
    _Q(
        name="uncommitted-turns-kept-after-failure",
        kind="commits",
        breaks="Turns that began before a failure are committed after it.",
        old="        self._begun, self._beginning = CommitGroup(), []\n",
        new="        self._beginning = []\n",
    ),
    _Q(
        name="inputs-of-failing-turn-forgotten",
        kind="commits",
        breaks="The callers of a turn that fails half-way wait for ever.",
        old="        lost = [*self._begun.inputs, *self._beginning]",
        new="        lost = self._begun.inputs",
    ),
    _D(
        name="full-disk-serves-publishers",
        kind="commits",
        breaks="Every publish on a full disk tries a commit that must fail.",
        old="            self._full_disk.commit_failed(self.backoff)",
        new="            pass",
    ),
)
