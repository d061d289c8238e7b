"""Connections: tests every other peer from the running peer itself."""

from __future__ import annotations

from typing import Final

from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result
from qns.runtime.connections import check_running


async def _run(context: Context, _: Arguments, __: Report) -> Result:
    status = context.driver.status
    found = await check_running(status, context.tls)
    return {
        "organisation": status.organisation,
        "findings": [{**each._asdict(), "verdict": each.verdict.value} for each in found],
    }


CONNECTIONS: Final = Operation("connections", _run)
