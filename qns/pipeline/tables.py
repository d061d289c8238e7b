"""Tables: the schemas of the tables that the jobs compute and the report reads.

Counts can be summed over consumers, producers and seeds. The scenario determines all tables except
`COST`, which has measured times and memory.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

Tables = dict[str, pa.Table]
"""Name of a table -> its rows."""

_SCENARIO = [
    pa.field("scenario", pa.string(), nullable=False),
    pa.field("mapping", pa.string(), nullable=False),
    pa.field("organisations", pa.int32(), nullable=False),
    pa.field("churn", pa.float64(), nullable=False),
    pa.field("seed", pa.int64(), nullable=False),
]


def _counts(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.int64(), nullable=False) for name in names]


def _texts(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.string(), nullable=False) for name in names]


SUBSCRIPTIONS: Final = pa.schema(
    [
        *_SCENARIO,
        *_texts("organisation", "producer"),
        *_counts("arrived", "changes", "live"),
        *_counts("messages_mapping", "messages_containment", "messages_both"),
        *_counts("rows_mapping", "rows_containment", "rows_both"),
    ]
)
"""For each consumer `organisation`, each other `producer` and each checkpoint: the SOAP messages so
far and the current rows in the producer's External Merge Table. The trivial solution has `changes`
messages and `live` rows; `mapping` uses only producers that host a requested class, `containment`
sends the merge subscription to all, `both` is QNS."""

BEYOND: Final = pa.schema(
    [
        *_SCENARIO,
        *_texts("organisation", "producer"),
        *_counts("arrived"),
        *_counts("rows_mapping", "terms_mapping", "bytes_mapping"),
        *_counts("rows_both", "terms_both", "bytes_both"),
        *_counts("rows_exact", "terms_exact", "bytes_exact"),
        *_counts("messages_both", "messages_exact"),
    ]
)
"""The same views with exact merging: rows, constraint terms and bytes of D2Q XML, and the messages
so far."""

NOTIFICATIONS: Final = pa.schema(
    [
        *_SCENARIO,
        *_texts("publisher"),
        *_counts("subscriptions", "published"),
        *_counts("delivered", "delivered_remote", "sent", "bytes_trivial", "bytes_sent"),
    ]
)
"""For each publisher, after `published` publications in the federation: deliveries to users
(`delivered_remote` of them to users of other organisations, which the trivial solution sends), and
notifications sent between peers, one for each interested organisation."""

TREES: Final = pa.schema(
    [
        *_SCENARIO,
        *_counts("subscriptions", "published", "fan_out"),
        *_counts("sent", "bytes", "most_children", "depth_sum", "most_depth"),
        *_counts("multicasts", "connections_sum", "most_connections"),
    ]
)
"""Diffusion trees for the same publications. `fan_out` 0 is without trees: the producer sends to
all receivers. `multicasts` counts events with at least one receiver; `depth_sum` is over receivers;
`most_children` is the most receivers of one event from one peer; `connections_sum` and
`most_connections` are over peers, of the number of peers to which one sent anything."""

COST: Final = pa.schema(
    [
        *_SCENARIO,
        *_texts("job", "organisation"),
        *_counts("arrived", "peak_bytes"),
        pa.field("seconds", pa.float64(), nullable=False),
    ]
)
"""The cost of an organisation: the CPU seconds of its tasks until the checkpoint, and the peak
memory of the largest one."""

TABLES: Final = {
    "subscriptions": SUBSCRIPTIONS,
    "beyond": BEYOND,
    "notifications": NOTIFICATIONS,
    "trees": TREES,
    "cost": COST,
}
