"""Cross-check: messages and rows of the merge subscription in pure Spark SQL, without our Python.

It is an independent answer for workloads without unsubscriptions and of moderate size, because it
compares each subscription with all others of its organisation. docs/merging-in-sql.md explains it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

_NEEDED = """
select s.organisation, m.organisation as producer, s.number,
       collect_set(m.class) as scope, any_value(s.constraints) as constraints
from {subscriptions} s
join {mapping} m
  on m.organisation <> s.organisation
 and (m.class = s.class or (not s.only and startswith(m.class, s.class || '/')))
 and (s.sources is null or array_contains(s.sources, m.organisation))
group by s.organisation, m.organisation, s.number
"""

_CONTAINED = """
select narrow.organisation, narrow.producer, narrow.number, wide.number as by
from {needed} narrow
join {needed} wide
  on wide.organisation = narrow.organisation
 and wide.producer = narrow.producer
 and wide.number <> narrow.number
 and size(array_except(narrow.scope, wide.scope)) = 0
 and forall(wide.constraints, w -> exists(narrow.constraints, n ->
       n.attribute = w.attribute
       and (w.value is null or n.value = w.value)
       and (w.low is null or n.low >= w.low)
       and (w.high is null or n.high <= w.high)))
"""

_COUNTS = """
with contained as (select * from {contained}),
silent as (   -- an earlier one contains it: no message when it arrives
  select distinct organisation, producer, number from contained where by < number
),
hidden as (   -- another one contains it; of equal ones the first is shown
  select distinct c.organisation, c.producer, c.number
  from contained c
  left join contained back
    on back.organisation = c.organisation and back.producer = c.producer
   and back.number = c.by and back.by = c.number
  where back.number is null or c.by < c.number
)
select n.organisation, n.producer,
       count(*) as messages_mapping,
       count_if(s.number is null) as messages_both,
       count_if(h.number is null) as rows_both
from {needed} n
left join silent s using (organisation, producer, number)
left join hidden h using (organisation, producer, number)
group by n.organisation, n.producer
"""


def counts_in_sql(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Messages and rows for each organisation and producer, after all subscriptions."""
    subscriptions, mapping = frames["subscriptions"], frames["mapping"]
    spark = subscriptions.sparkSession
    needed = spark.sql(_NEEDED, subscriptions=subscriptions, mapping=mapping).persist()
    contained = spark.sql(_CONTAINED, needed=needed)
    return spark.sql(_COUNTS, contained=contained, needed=needed)
