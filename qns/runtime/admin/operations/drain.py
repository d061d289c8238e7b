"""Drain and resume: the peer accepts nothing new until it is resumed, and finishes its work."""

from __future__ import annotations

import asyncio
from typing import Final

from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result

_REPORT_EVERY_S: Final = 0.2


async def _drain(context: Context, arguments: Arguments, report: Report) -> Result:
    await asyncio.to_thread(context.drain.begin)
    work = _work(context)
    while arguments.get("wait", False) and not work["drained"] and context.drain.is_on:
        await report(work)
        await asyncio.sleep(_REPORT_EVERY_S)
        work = _work(context)
    return work


async def _resume(context: Context, _: Arguments, __: Report) -> Result:
    was_draining = context.drain.is_on
    await asyncio.to_thread(context.drain.end)
    return {**_work(context), "was_draining": was_draining}


def _work(context: Context) -> Result:
    """Returns what the peer has promised to other organisations and not finished."""
    driver = context.driver
    status = driver.status
    owed = {each.consumer: each.lag_events for each in status.outbound() if each.lag_events}
    custody = status.custody
    return {
        "organisation": status.organisation,
        "draining": context.drain.is_on,
        "drained": not (driver.waiting or owed or custody),
        "owed": owed,
        "custody": custody,
        "deliveries_waiting": status.deliveries_waiting,
    }


DRAIN: Final = Operation("drain", _drain, optional={"wait": bool})
RESUME: Final = Operation("resume", _resume)
