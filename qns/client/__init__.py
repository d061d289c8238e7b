"""The clients of a peer, what they take and return, and the errors that they raise."""

import typing as _typing

import qns as _qns
from qns.client.address import PeerUnreachable
from qns.client.client import Client
from qns.client.collection import Collection
from qns.client.delivered import Delivered
from qns.client.deliveries import DeliveryStream
from qns.d2q.typed_values import TypedValues
from qns.errors import Busy, QnsError
from qns.iil.cursor import CursorAhead
from qns.iil.deliveries_dropped import DeliveriesDropped, Dropped
from qns.iil.requests import Published, Subscribed, SubscriptionInfo, Unsubscribed

if _typing.TYPE_CHECKING:
    from qns.client.async_client import AsyncClient
    from qns.client.async_collection import AsyncCollection
    from qns.client.async_deliveries import AsyncDeliveryStream

__all__ = [
    "AsyncClient",
    "AsyncCollection",
    "AsyncDeliveryStream",
    "Busy",
    "Client",
    "Collection",
    "CursorAhead",
    "Delivered",
    "DeliveriesDropped",
    "DeliveryStream",
    "Dropped",
    "PeerUnreachable",
    "Published",
    "QnsError",
    "Subscribed",
    "SubscriptionInfo",
    "TypedValues",
    "Unsubscribed",
]

_ASYNCHRONOUS = ("AsyncClient", "AsyncCollection", "AsyncDeliveryStream")


def __getattr__(name: str) -> _typing.Any:
    """Loads the asynchronous names, which need aiohttp, on first use."""
    if name not in _ASYNCHRONOUS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_qns, name)
    return value
