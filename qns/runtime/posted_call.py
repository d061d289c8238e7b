"""Posted call: one SOAP call, from the bytes of the request to those of the answer.

What a call of a member costs is charged to its quotas. With mutual TLS the connection says whose
call it is, and a call beyond a quota is refused before its body is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Final

from qns.edl.messages import Envelope, Fault
from qns.errors import Busy, DocumentError, QnsError, StoreFailed
from qns.iil.requests import Publish, PullDeliveries
from qns.peer.inputs import Output, Received
from qns.runtime.http import Respond
from qns.runtime.http_messages import Request, Response
from qns.runtime.log_reason import log_reason
from qns.runtime.logs import LOG, log_event, log_exception
from qns.runtime.quotas import QuotaExceeded
from qns.runtime.traffic import RECEIVED
from qns.soap.endpoint import Call, Endpoint, HttpReply, SoapRefusal
from qns.soap.retry_after import RETRY_AFTER, write_retry_after
from qns.soap.shapes import Port

if TYPE_CHECKING:
    from qns.runtime.server import Server

HELD_S: Final = 1.0
"""How long the refusal of a request beyond a quota is held at most: a client that repeats it at
once costs little then."""


@dataclass(slots=True, eq=False)
class PostedCall:
    """A SOAP call in progress."""

    server: Server
    port: Port
    endpoint: Endpoint
    respond: Respond
    request: Request
    member: str | None = None
    """The organisation whose connection it is; None if connections are not authenticated."""
    sender: str = ""
    """Without mutual TLS: the organisation that the request of a peer names."""
    started: float = field(default_factory=perf_counter)
    call: Call | None = None
    is_admitted: bool = False
    on_end: Callable[[], None] | None = None
    """Is called once, when the call is answered."""

    def begin_in_turn(self, on_end: Callable[[], None]) -> None:
        """Begins a call of a member, which is no pull that waits."""
        self.on_end = on_end
        self.begin()

    def begin(self) -> asyncio.Task[None] | None:
        begun = thread_time()
        try:
            return self._begin()
        except SoapRefusal as refusal:
            self._answer(refusal.reply, "refused", refusal.error)
        except Exception:
            self._fail()
        finally:
            self._charge(begun)
        return None

    def _begin(self) -> asyncio.Task[None] | None:
        request = self.request
        if self.member is not None and not self._is_within_quotas(self.member):
            return None
        if request.flaw is not None:
            status, problem, remedy = request.flaw
            flaw = DocumentError(problem, remedy=remedy)
            self._answer(self.endpoint.refusal(flaw)._replace(status=status), "refused", flaw)
            return None
        self.is_admitted = self.server.admission.admit(self.port)
        if not self.is_admitted:
            busy = Busy("too many requests are being handled", remedy="try again later")
            self._answer(self.endpoint.refusal(busy)._replace(status=503), "busy", busy, 1.0)
            return None
        self.call = call = self.endpoint.decode(self.port, request.headers, request.body)
        if self.member is None and isinstance(call.input, Received):
            self.sender = call.input.envelope.sender
            if not self._is_within_quotas(self.sender):
                return None
        if call.wait_s and isinstance(call.input, PullDeliveries):
            return asyncio.get_running_loop().create_task(self._wait(call))
        self.server.ask(call.input, self.answered, self.member)
        return None

    # --- quotas -----------------------------------------------------------------------------------

    def _is_within_quotas(self, member: str) -> bool:
        """Charges the request to its member; answers it and returns False if it is refused."""
        problem = self.server.quotas.admit(member, len(self.request.body))
        if problem is None:
            return True
        status, fault = self.server.driver.status, Fault(str(problem))
        envelope = Envelope(status.organisation, status.federation.version, (), fault)
        message_id = self.call.message_id if self.call is not None else ""
        reply = self.endpoint.busy(envelope, message_id)._replace(status=429)
        self._answer(reply, "busy", problem, problem.retry_after_s)
        return False

    def _charge(self, begun: float) -> None:
        """Charges the CPU time since then."""
        self.server.quotas.charge(self.member or self.sender, thread_time() - begun)

    # --- the answer -------------------------------------------------------------------------------

    async def _wait(self, call: Call) -> None:
        try:
            self.answered(await self.server.deliveries(call))
        except asyncio.CancelledError:  # the client has disconnected
            self._release()
            raise
        except Exception:
            self._fail()

    def answered(self, output: Output | Exception) -> None:
        begun = thread_time()
        self._answer_with(output)
        self._charge(begun)

    def _answer_with(self, output: Output | Exception) -> None:
        if isinstance(output, Exception) and not isinstance(output, QnsError):
            self._answer(self.endpoint.failure(self.call), "failure")  # the driver has logged it
            return
        try:
            assert self.call is not None
            assert output is not None, "every request has an answer"
            reply = self.endpoint.reply(self.call, output)
            self._answer(reply, _outcome(output), _problem(output))
        except Exception:
            self._fail()

    def _fail(self) -> None:
        """Logs the current exception and answers with a fault that does not mention it."""
        log_exception("a request failed", operation=self.call.operation if self.call else "")
        self._answer(self.endpoint.failure(self.call), "failure")

    def _release(self) -> None:
        if self.is_admitted:
            self.is_admitted = False
            self.server.admission.release(self.port)
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()

    def _answer(
        self,
        reply: HttpReply,
        outcome: str,
        problem: QnsError | Fault | None = None,
        retry_after_s: float = 0.0,
    ) -> None:
        """Answers the call. The answer to one beyond a quota is held for a moment."""
        self._release()
        operation = self.call.operation if self.call is not None else "unreadable"
        port = self.port.value
        self.server.traffic.count(
            port, operation, RECEIVED, outcome, len(self.request.body), len(reply.body)
        )
        if problem is not None:
            words = "a request was refused"
            if outcome == "busy":
                words = "a request was not served and may be repeated"
            self._log(logging.WARNING, words, operation, outcome, problem)
        if LOG.isEnabledFor(logging.DEBUG):
            self._log(logging.DEBUG, "answered", operation, outcome, problem)
        response = Response(*reply)
        if retry_after_s:
            response = response._replace(more=((RETRY_AFTER, write_retry_after(retry_after_s)),))
        if isinstance(problem, QuotaExceeded):
            held_s = min(HELD_S, retry_after_s)
            asyncio.get_running_loop().call_later(held_s, self.respond, response)
        else:
            self.respond(response)

    def _log(
        self,
        level: int,
        words: str,
        operation: str,
        outcome: str,
        problem: QnsError | Fault | None,
    ) -> None:
        """Logs the call with its caller and the reason, without its content."""
        fields: dict[str, object] = {"port": self.port.value, "operation": operation}
        if problem is not None:
            fields["reason"] = problem.reason if isinstance(problem, Fault) else log_reason(problem)
        fields["outcome"] = outcome
        call = self.call
        if call is not None:
            fields |= {"caller": _caller(call), "message_id": call.message_id}
        if self.member is not None:
            fields["member"] = self.member
            fields.setdefault("caller", self.member)
        fields["address"] = self.request.address
        log_event(level, words, **fields, ms=round((perf_counter() - self.started) * 1000, 3))


def _caller(call: Call) -> str:
    """Returns who makes the call, as the call claims: an organisation or a user."""
    match call.input:
        case Received(envelope=envelope):
            return envelope.sender
        case Publish(event=event):
            return event.source
        case request:
            return str(getattr(request, "owner", ""))


def _problem(output: Output) -> QnsError | Fault | None:
    if isinstance(output, Envelope):
        return output.body if isinstance(output.body, Fault) else None
    return output if isinstance(output, QnsError) else None


def _outcome(output: Output) -> str:
    if isinstance(output, QnsError):
        return "busy" if isinstance(output, Busy | StoreFailed) else "fault"
    return "fault" if isinstance(output, Envelope) and isinstance(output.body, Fault) else "ok"
