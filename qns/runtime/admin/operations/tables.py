"""Tables: merge subscriptions, streams, custody and links of the peer."""

from __future__ import annotations

from typing import Final

from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result, checked_limit
from qns.runtime.admin.plain_values import plain

_LIMIT: Final = 20


async def _run(context: Context, arguments: Arguments, _: Report) -> Result:
    limit = checked_limit(arguments, _LIMIT)
    status, now = context.driver.status, context.driver.now()
    found = status.routing_tables(now, limit)
    result: Result = plain(found)
    for row, stream in zip(result["streams_to"]["rows"], found.streams_to.rows, strict=True):
        row["lag_events"] = stream.lag_events
    return {"organisation": status.organisation, **result}


TABLES: Final = Operation("tables", _run, optional={"limit": int})
