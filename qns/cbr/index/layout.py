"""The layout of the compiled index's arrays: which word means what.

All rows live in one array of int64 words, the **arena**; a few tables say where.

A **bucket** holds the subscriptions that are filed under one access key: (partition, slot, key)
for those that pin an attribute to one value, (partition, slot, ANY_KEY) for those that merely need
the attribute, (partition, NO_SLOT, ANY_KEY) for those that constrain nothing. The **doors** are the
directory from access key to bucket. A small bucket lists its rows one after the other, each with
its intervals. A bucket of more than LARGE rows keeps them column by column, in one **group** for
each set of attributes; it lists what its groups need, and after that where they are.
`where` tells for each handle where its row is.
"""

from __future__ import annotations

from typing import Final

ABSENT: Final = -(2**63)
"""The value of an attribute that the event lacks; it lies in no interval."""
ANY_KEY: Final = -(2**63) + 1
NO_SLOT: Final = 0
"""A slot that no attribute has: every event is taken to carry it."""
LARGE: Final = 64
BLOCK: Final = 256

# One row of a small bucket: who, which attributes it needs, how many intervals; then each
# interval as slot, lo, hi. STRIDE words for each row of a bucket.
ROW_META, ROW_NEED, ROW_WIDTH, ROW_INTERVALS = 0, 1, 2, 3

# The meta word: handle, set of sources, and whether more has to be checked.
HANDLE_MASK: Final = (1 << 32) - 1
SOURCES_SHIFT: Final = 32
SOURCES_MASK: Final = (1 << 28) - 1
EXTRA_BIT: Final = 1 << 60
RESIDUAL_BIT: Final = 1 << 61

# buckets. A large one has STRIDE 0 and LISTED groups: from START its ROOM needs, then their heads.
BUCKET_START, BUCKET_LENGTH, BUCKET_ROOM, BUCKET_STRIDE, BUCKET_LISTED = 0, 1, 2, 3, 4
BUCKET_PLACE, BUCKET_KEY, BUCKET_COLUMNS = 5, 6, 7

# The head of a group: where it is and how many slots it has; how many rows, and room for how many;
# which group it is.
# A group is its slots, then columns of ROOM words: meta, lo, hi, lo, hi, …
HEAD_PLACE, HEAD_SIZE, HEAD_GROUP, HEAD_WORDS = 0, 1, 2, 3
LOW_MASK: Final = (1 << 32) - 1
HIGH_SHIFT: Final = 32
WIDTH_SHIFT: Final = 44
START_MASK: Final = (1 << WIDTH_SHIFT) - 1

# groups: where a group is listed.
GROUP_BUCKET, GROUP_NTH, GROUP_COLUMNS = 0, 1, 2

# doors: (place = partition and slot, key) -> bucket; for groups (bucket, hash of slots) -> group.
DOOR_PLACE, DOOR_KEY, DOOR_TARGET, DOOR_COLUMNS = 0, 1, 2, 3
NO_DOOR, CLOSED_DOOR = -1, -2  # targets: nothing was ever here; something was, look further

# slots: which of 64 bits stands for the slot in a need; what is filed under it; how likely it is.
SLOT_BIT, SLOT_FILED, SLOT_WEIGHT, SLOT_COLUMNS = 0, 1, 2, 3
FILED_PINNED, FILED_ANY = 1, 2
WEIGHT_DATA, WEIGHT_QUALITY = 4, 1
"""How likely an event carries a slot, in quarters: data nearly always, one quality value rarely."""

# where: the bucket, or the complement of the group; the row in it; the extra checks.
WHERE_HOME, WHERE_POSITION, WHERE_EXTRA, WHERE_COLUMNS = 0, 1, 2, 3

# A row on its way in: partition, meta word, how many intervals; then each as slot, lo, hi.
ITEM_PART, ITEM_META, ITEM_LENGTH, ITEM_FIELDS = 0, 1, 2, 3

# An encoded event: class, source, how many values; then each value as slot, key.
EVENT_CLASS, EVENT_SOURCE, EVENT_LENGTH, EVENT_FIELDS = 0, 1, 2, 3

# An extra check: a set of several intervals, or the least change of a quality value.
CHECK_SPANS, CHECK_CHANGE = 1, 2

# state: how far the tables are used, and why an insertion stopped.
USED_BUCKETS, FREE_BUCKETS, USED_GROUPS, FREE_GROUPS = 0, 1, 2, 3
GROUP_DOORS, REASON, STATE_WORDS = 4, 5, 6  # doors to groups, open or closed
DONE, ARENA_FULL, TABLES_FULL = 0, 1, 2

# The arena's first words: its end, then the first free chunk of each size.
ARENA_END, ARENA_FREE, ARENA_FIRST = 0, 1, 64
