"""The layout of the compiled index's arrays: the meaning of each word.

All rows are in one array of int64 words, the **arena**. A few tables hold their positions.

A **field** is an attribute, or the previous value of a quality dimension, as a number. A **bucket**
holds the subscriptions that are filed under one access key: (partition, field, key) for those that
pin the field to one value, (partition, field, ANY_KEY) for those that only need the field, and
(partition, NO_FIELD, ANY_KEY) for those without constraints. A **directory** is a hash table from
access keys to buckets; each of its rows is a **slot**. A small bucket lists its rows one after the
other, each with its intervals. A bucket of more than LARGE rows stores them by column, in one
**group** for each set of fields. It lists first the fields that each group needs, then the heads of
the groups. `where` holds the position of each handle's row.
"""

from __future__ import annotations

from typing import Final

ABSENT: Final = -(2**63)
"""The value of a field that the event lacks. It lies in no interval."""
ANY_KEY: Final = -(2**63) + 1
NO_FIELD: Final = 0
"""A field that stands for no attribute. Every event is taken to carry it."""
LARGE: Final = 64
BLOCK: Final = 256
CONVERSION_FACTOR: Final = 32
"""A bucket becomes large only if the arena has this many free words for each word of its rows.
That is more than the groups and their list can take."""

# An interval of a row.
INTERVAL_FIELD, INTERVAL_LO, INTERVAL_HI, INTERVAL_WORDS = 0, 1, 2, 3

# One row of a small bucket: the meta word, the bits of the fields that it needs, the number of its
# intervals, then the intervals. Each row of a bucket takes BUCKET_STRIDE words.
ROW_META, ROW_NEED, ROW_WIDTH, ROW_INTERVALS = 0, 1, 2, 3

# The meta word: the handle, the set of sources, and whether more has to be checked.
HANDLE_MASK: Final = (1 << 32) - 1
SOURCES_SHIFT: Final = 32
SOURCES_MASK: Final = (1 << 28) - 1
EXTRA_BIT: Final = 1 << 60
RESIDUAL_BIT: Final = 1 << 61

# buckets. A large one has STRIDE 0 and LISTED groups: from START the ROOM needs, then their heads.
BUCKET_START, BUCKET_LENGTH, BUCKET_ROOM, BUCKET_STRIDE, BUCKET_LISTED = 0, 1, 2, 3, 4
BUCKET_SPACE, BUCKET_KEY, BUCKET_COLUMNS = 5, 6, 7

# The space of a bucket's key: its partition and its field in one word.
PART_SHIFT: Final = 32
FIELD_MASK: Final = (1 << PART_SHIFT) - 1

# The head of a group. EXTENT: where it starts and the number of its fields; SIZE: the number of its
# rows and for how many it has room; GROUP: its number.
HEAD_EXTENT, HEAD_SIZE, HEAD_GROUP, HEAD_WORDS = 0, 1, 2, 3
LOW_MASK: Final = (1 << 32) - 1
HIGH_SHIFT: Final = 32
WIDTH_SHIFT: Final = 44
START_MASK: Final = (1 << WIDTH_SHIFT) - 1
LIST_WORDS: Final = 1 + HEAD_WORDS
"""What a group takes in its bucket's list: one word for its need, and its head."""

# A group: its fields, then columns of ROOM words: meta, lo, hi, lo, hi, … The columns of the nth
# field are COLUMN_LO + COLUMN_STEP * n and COLUMN_HI + COLUMN_STEP * n.
COLUMN_META, COLUMN_LO, COLUMN_HI, COLUMN_STEP = 0, 1, 2, 2

# groups: where a group is listed. BUCKET is NO_BUCKET for a number that no group has.
GROUP_BUCKET, GROUP_NTH, GROUP_COLUMNS = 0, 1, 2
NO_BUCKET: Final = -1

# A slot of a directory: (space, key) -> bucket; for groups (bucket, hash of fields) -> group.
SLOT_SPACE, SLOT_KEY, SLOT_TARGET, SLOT_COLUMNS = 0, 1, 2, 3
EMPTY_SLOT, DELETED_SLOT = -1, -2  # targets; a search ends at an empty slot, not at a deleted one

# fields: which of 64 bits stands for the field in a need; what is filed under it; its weight.
FIELD_BIT, FIELD_FILED, FIELD_WEIGHT, FIELD_COLUMNS = 0, 1, 2, 3
FILED_PINNED, FILED_ANY = 1, 2
WEIGHT_DATA, WEIGHT_QUALITY = 4, 1
"""The probability that an event carries a field, in quarters: data nearly always, one quality
value rarely."""

# class_parts: how many partitions have the class in their scope, then the partitions.
CLASS_COUNT, CLASS_FIRST = 0, 1

# source_sets: one bit for each source, in words of 64 bits.
SOURCE_SHIFT: Final = 6
SOURCE_MASK: Final = (1 << SOURCE_SHIFT) - 1

# where: the bucket, or the complement of the group; the row's position in it; the extra checks.
WHERE_HOME, WHERE_POSITION, WHERE_EXTRA, WHERE_COLUMNS = 0, 1, 2, 3

# A row to be inserted: the partition, the meta word, the number of intervals, then the intervals.
ITEM_PART, ITEM_META, ITEM_LENGTH, ITEM_INTERVALS = 0, 1, 2, 3

# An encoded event: class, source, the number of values, then the values.
EVENT_CLASS, EVENT_SOURCE, EVENT_LENGTH, EVENT_VALUES = 0, 1, 2, 3
VALUE_FIELD, VALUE_KEY, VALUE_WORDS = 0, 1, 2

# The extra checks of a row: their number and how many words they take with this one; the checks.
EXTRA_SIZE, EXTRA_CHECKS = 0, 1

# An extra check: its kind and its field. Either a set of several spans: their number, then each as
# lo, hi. Or the least change of a quality value: the field of the previous value, and the change.
CHECK_KIND, CHECK_FIELD = 0, 1
CHECK_LENGTH, CHECK_SPANS = 2, 3
CHECK_PREVIOUS, CHECK_CHANGE, CHECK_CHANGE_WORDS = 2, 3, 4
KIND_SPANS, KIND_CHANGE = 1, 2
SPAN_LO, SPAN_HI, SPAN_WORDS = 0, 1, 2

# state: how far the tables are used, and why an insertion stopped.
USED_BUCKETS, FREE_BUCKETS, USED_GROUPS, FREE_GROUPS = 0, 1, 2, 3
GROUP_SLOTS, REASON, STATE_WORDS = 4, 5, 6  # slots of the groups' directory that are not empty
DONE, ARENA_FULL, TABLES_FULL = 0, 1, 2

# The arena's first words: its end, then the first free chunk of each size.
ARENA_END, ARENA_FREE, ARENA_FIRST = 0, 1, 64
NO_CHUNK: Final = -1
