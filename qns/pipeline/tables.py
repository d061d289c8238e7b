"""The tables of a run: what the jobs compute and the report reads, column by column.

Counts of one table add up: over consumers, over producers, over seeds. Everything is determined by
the scenario but `COST`, which tells what it took.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

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
"""For each consumer `organisation`, each other `producer` and each checkpoint: SOAP messages until
then and rows in the producer's External Merge Table then. The trivial solution has `changes`
messages and `live` rows; `mapping` tells only producers that host what is asked for, `containment`
tells everybody the merge subscription, `both` is QNS."""

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
"""What exact merging does to the same views: rows, constraint terms and bytes of D2Q XML, and the
messages until then."""

NOTIFICATIONS: Final = pa.schema(
    [
        *_SCENARIO,
        *_texts("publisher"),
        *_counts("subscriptions", "published"),
        *_counts("delivered", "delivered_remote", "sent", "bytes_trivial", "bytes_sent"),
    ]
)
"""For each publisher, until `published` publications in the federation: deliveries to users (of
them to users of other organisations: what the trivial solution sends), and notifications sent
between peers, one for each interested organisation."""

TREES: Final = pa.schema(
    [
        *_SCENARIO,
        *_counts("subscriptions", "published", "fan_out"),
        *_counts("sent", "bytes", "most_children", "depth_sum", "most_depth"),
        *_counts("multicasts", "connections_sum", "most_connections"),
    ]
)
"""Diffusion trees over the same publications. `fan_out` 0 is without trees: the producer sends all
itself. `multicasts` is how many events went to anybody; `depth_sum` is over receivers;
`most_children` the most that one peer sent of one event; `connections_sum` and `most_connections`
are over peers: to how many others one sent anything at all."""

COST: Final = pa.schema(
    [
        *_SCENARIO,
        *_texts("job", "organisation"),
        *_counts("arrived", "peak_bytes"),
        pa.field("seconds", pa.float64(), nullable=False),
    ]
)
"""What a task took: seconds until that checkpoint, and the peak memory of its process by then."""

TABLES: Final = {
    "subscriptions": SUBSCRIPTIONS,
    "beyond": BEYOND,
    "notifications": NOTIFICATIONS,
    "trees": TREES,
    "cost": COST,
}
DETERMINED: Final = ("subscriptions", "beyond", "notifications", "trees")
"""The same for the same scenario, wherever it is computed."""
