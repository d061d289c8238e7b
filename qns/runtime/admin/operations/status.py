"""Status: whether the peer works, and the work that is left to it."""

from __future__ import annotations

import os
from typing import Final

from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result


async def _run(context: Context, _: Arguments, __: Report) -> Result:
    status = context.driver.status
    return {
        **context.health.state(),
        "pid": os.getpid(),
        "listen": context.configuration.url,
        "local": context.configuration.local_url,
        "store": str(context.configuration.store.absolute()),
        "owed": sum(each.lag_events for each in status.outbound()),
        "custody": status.custody,
        "dead_letters": status.dead_letters,
        "deliveries_waiting": status.deliveries_waiting,
        "unreachable": list(status.unreachable),
    }


STATUS: Final = Operation("status", _run)
