"""Documents: how an operator puts a federation document in force at a running peer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from qns.errors import QnsError
from qns.federation.changes import changes
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation
from qns.iil.requests import InstallDocument
from qns.peer.opening import DocumentPlan, plan_document
from qns.runtime.addresses import checked_endpoint
from qns.runtime.logs import log_event

if TYPE_CHECKING:
    from qns.runtime.driver import Driver


def read_document(xml: bytes, *, has_tls: bool = False) -> Federation:
    """Reads a document; raises a QnsError if a peer with or without TLS cannot call a member."""
    federation = read_federation(xml)
    for name, each in federation.organisations.items():
        if each.endpoint:
            try:
                checked_endpoint(each.endpoint, has_tls=has_tls)
            except QnsError as error:
                raise error.at(f"federation: {name}") from None
    return federation


async def install_document(driver: Driver, xml: bytes, *, has_tls: bool = False) -> list[str]:
    """Puts a newer document in force and returns its changes in words, after the commit.

    Returns nothing if the document is in force already. Raises a QnsError, and changes nothing, if
    the document may not replace the one in force or has an older version.
    """
    new, old = read_document(xml, has_tls=has_tls), driver.status.federation
    if new == old:
        return []
    found = [change.text for change in changes(old, new)] if new.version != old.version else []
    answer = await driver.submit(InstallDocument(xml))
    if isinstance(answer, QnsError):
        raise answer
    driver.refused_document = ""
    return found


def report_plan(plan: DocumentPlan) -> str:
    """Logs what becomes of the configured document; returns why it is refused, or nothing."""
    if plan.refusal is not None:
        reason = str(plan.refusal)
        log_event(logging.WARNING, "the federation document is not put in force", reason=reason)
        return reason
    if plan.notice:
        log_event(logging.INFO, "the configured document is not used", reason=plan.notice)
    return ""


async def install_configured(driver: Driver, xml: bytes, *, has_tls: bool = False) -> None:
    """Puts the configured document in force if it is newer; raises a QnsError if it may not be."""
    anchor = driver.gateway.peer.anchor
    plan = plan_document(driver.status.document, xml, now=driver.now(), anchor=anchor)
    if plan.installs:
        await install_document(driver, xml, has_tls=has_tls)
    elif plan.refusal is not None:
        driver.refused_document = str(plan.refusal)
        raise plan.refusal
    driver.refused_document = report_plan(plan)
