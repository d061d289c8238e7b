"""Document: puts a newer federation document in force at the running peer."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Final

from qns.errors import FederationError, ValueRefused
from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result
from qns.runtime.documents import install_document, read_document


async def _install(context: Context, arguments: Arguments, _: Report) -> Result:
    try:
        xml = b64decode(arguments["document"], validate=True)
    except (binascii.Error, ValueError):
        raise ValueRefused("the document is not base64", place="document-install") from None
    has_tls = context.configuration.has_tls
    new, old = read_document(xml, has_tls=has_tls), context.driver.status.federation
    if new.version < old.version:
        raise FederationError(
            f"version {old.version} is in force, and this is version {new.version}",
            remedy=f"a change needs the next version: {old.version + 1}",
        )
    found = await install_document(context.driver, xml, has_tls=has_tls)
    return {
        "federation": new.name,
        "before": old.version,
        "version": context.driver.status.federation.version,
        "changes": found,
    }


DOCUMENT_INSTALL: Final = Operation("document-install", _install, {"document": str})
