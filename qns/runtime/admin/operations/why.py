"""Why: explains why a user was notified of an event or not, or where the event is on its way."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from qns.errors import ValueRefused
from qns.peer.history_search import search_history
from qns.peer.why import Question
from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result
from qns.runtime.admin.plain_values import plain

_NOT_NEEDED: Final = (
    "this peer does not have the event any more, but has had it: the history has what became of it"
)


async def _run(context: Context, arguments: Arguments, _: Report) -> Result:
    if "fields" in arguments and "xml" in arguments:
        raise ValueRefused("the event is given twice", remedy="give fields or xml")
    status = context.driver.status
    given = arguments.get("fields", arguments.get("xml"))
    question = Question(
        arguments["event"],
        arguments.get("source", ""),
        arguments.get("subscription", ""),
        arguments.get("to", ""),
        given,
    )
    found = status.why(question)
    result: Result = plain(found)
    result["history"], result["history_complete"] = None, True
    if context.configuration.history:
        history = await asyncio.to_thread(
            search_history,
            context.driver.gateway.store,
            status.epoch,
            status.organisation,
            found.source,
            found.event,
        )
        result["history"] = [
            each
            for each in history.records
            if (not question.subscription or each["sub"] in ("", question.subscription))
            and (not question.to or each["to"] in ("", question.to))
        ]
        result["history_complete"] = history.is_complete
        if any(each["do"] == "ntfy" and question.subscription for each in result["history"]):
            result["verdict"] = "delivered"
        if history.records:
            _correct_absence(result["facts"])
    return result


def _correct_absence(facts: list[dict[str, Any]]) -> None:
    """Leaves out the guesses why the event is absent: the history shows that it was here."""
    for fact in facts:
        if fact["kind"] == "absent":
            fact["words"] = _NOT_NEEDED


WHY: Final = Operation(
    "why",
    _run,
    {"event": str},
    {"source": str, "subscription": str, "to": str, "fields": dict, "xml": str},
)
