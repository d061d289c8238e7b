"""What programs import to talk to the peer of their organisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qns.client.address import PeerUnreachable
from qns.client.client import Client
from qns.client.collection import Collection
from qns.client.cursor import CursorAhead
from qns.client.delivered import Delivered
from qns.client.deliveries import DeliveryStream

if TYPE_CHECKING:
    from qns.client.async_client import AsyncClient, AsyncDeliveryStream
    from qns.client.async_collection import AsyncCollection

__all__ = [
    "AsyncClient",
    "AsyncCollection",
    "AsyncDeliveryStream",
    "Client",
    "Collection",
    "CursorAhead",
    "Delivered",
    "DeliveryStream",
    "PeerUnreachable",
]


def __getattr__(name: str) -> Any:
    """The asynchronous half, and aiohttp with it, only for those who ask for it."""
    if name in {"AsyncClient", "AsyncDeliveryStream"}:
        from qns.client import async_client

        return getattr(async_client, name)
    if name == "AsyncCollection":
        from qns.client import async_collection

        return async_collection.AsyncCollection
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
