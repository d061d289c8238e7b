"""Evidence: returns the evidence of an event as a file."""

from __future__ import annotations

import asyncio
from typing import Final

from qns.evidence.evidence_file import write_evidence
from qns.evidence.gathering import gather
from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result


async def _run(context: Context, arguments: Arguments, _: Report) -> Result:
    store = context.driver.gateway.store
    event, source = arguments["event"], arguments.get("source", "")
    found = await asyncio.to_thread(gather, store, event, source)
    return {"file": write_evidence(found).decode()}


EVIDENCE: Final = Operation("evidence", _run, {"event": str}, {"source": str})
