"""Tables: merge subscriptions, streams, custody and links of the peer."""

from __future__ import annotations

from typing import Final

from qns.errors import ValueRefused
from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result
from qns.runtime.admin.plain_values import plain

_LIMIT: Final = 20
_LARGEST_LIMIT: Final = 10_000
"""More rows would keep the peer from its work for too long."""


async def _run(context: Context, arguments: Arguments, _: Report) -> Result:
    limit = arguments.get("limit", _LIMIT)
    if not 0 < limit <= _LARGEST_LIMIT:
        raise ValueRefused(f"a limit of {limit}", remedy=f"give one from 1 to {_LARGEST_LIMIT:,}")
    status, now = context.driver.status, context.driver.now()
    found = status.routing_tables(now, limit)
    result: Result = plain(found)
    for row, stream in zip(result["streams_to"]["rows"], found.streams_to.rows, strict=True):
        row["lag_events"] = stream.lag_events
    return {"organisation": status.organisation, **result}


TABLES: Final = Operation("tables", _run, optional={"limit": int})
