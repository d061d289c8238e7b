"""Dead letters: lists, shows, redelivers and drops notifications that receivers rejected."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from qns.errors import QnsError, ValueRefused
from qns.iil.requests import DropDeadLetter, RedeliverDeadLetter
from qns.peer.dead_letters import DeadLetter
from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result, checked_limit
from qns.runtime.admin.plain_values import plain

_LIMIT: Final = 50


async def _list(context: Context, arguments: Arguments, _: Report) -> Result:
    limit = checked_limit(arguments, _LIMIT)
    letters = context.driver.status.find_dead_letters(arguments.get("receiver"))
    shown = list(islice(letters, limit))
    total = len(shown) + sum(1 for _ in letters)
    return {"total": total, "rows": [_with_age(each, context) for each in shown]}


async def _show(context: Context, arguments: Arguments, _: Report) -> Result:
    status = context.driver.status
    letter = status.dead_letter(arguments["number"])
    found = _with_age(letter, context)
    if arguments.get("payload"):
        found["payload"] = status.content_of(letter)
    return found


async def _redeliver(context: Context, arguments: Arguments, _: Report) -> Result:
    return await _each(context, arguments, RedeliverDeadLetter)


async def _drop(context: Context, arguments: Arguments, _: Report) -> Result:
    return await _each(context, arguments, DropDeadLetter)


async def _each(
    context: Context,
    arguments: Arguments,
    request: Callable[[int], RedeliverDeadLetter | DropDeadLetter],
) -> Result:
    """Makes the request for each letter; says for which it was made, and why not for the others."""
    done: list[int] = []
    refused: list[Result] = []
    for number in _numbers(context, arguments):
        answer = await context.driver.submit(request(number))
        if isinstance(answer, QnsError):
            refused.append({"number": number, "problem": str(answer)})
        else:
            done.append(number)
    return {"done": done, "refused": refused}


def _numbers(context: Context, arguments: Arguments) -> list[int]:
    numbers, receiver = arguments.get("numbers", []), arguments.get("receiver")
    if bool(numbers) == (receiver is not None):
        raise ValueRefused(
            "neither the numbers of dead letters nor a receiver is given, or both are",
            remedy="give numbers, or --receiver NAME for all of a receiver",
        )
    if receiver is not None:
        found = context.driver.status.find_dead_letters(receiver)
        return [letter.number for letter in found]
    if not all(type(number) is int for number in numbers):
        raise ValueRefused("a number of a dead letter is not a whole number")
    return list(dict.fromkeys(numbers))


def _with_age(letter: DeadLetter, context: Context) -> Result:
    found: Result = plain(letter)
    return {**found, "age_s": round(max(0.0, context.driver.now() - letter.at), 3)}


_CHOICE: Final = {"numbers": list, "receiver": str}
DEAD_LETTERS: Final = (
    Operation("dead-letters list", _list, optional={"receiver": str, "limit": int}),
    Operation("dead-letters show", _show, {"number": int}, {"payload": bool}),
    Operation("dead-letters redeliver", _redeliver, optional=_CHOICE),
    Operation("dead-letters drop", _drop, optional=_CHOICE),
)
