"""QNS, the Quality Notification Service: the names that programs import.

from qns import AGENCIES, Client, parse_subscription

A name is loaded from its module when it is first used, so `import qns` alone loads no other module.
docs/api.md describes every name; `__init__.pyi` gives the types to type checkers.
"""

from importlib import import_module as _import_module

__version__ = "0.2.0"

_MODULES = {
    "qns.cbr.covering": ("CoveringOrder",),
    "qns.cbr.delta": ("Delta",),
    "qns.cbr.event": ("Event",),
    "qns.cbr.index": ("MatchingIndex",),
    "qns.cbr.subscription": ("Subscription",),
    "qns.cbr.witness": ("Witness", "witness"),
    "qns.client.address": ("PeerUnreachable",),
    "qns.client.async_client": ("AsyncClient",),
    "qns.client.async_collection": ("AsyncCollection",),
    "qns.client.async_deliveries": ("AsyncDeliveryStream",),
    "qns.client.client": ("Client",),
    "qns.client.collection": ("Collection",),
    "qns.client.delivered": ("Delivered",),
    "qns.client.deliveries": ("DeliveryStream",),
    "qns.d2q.event_json": ("EventReader", "write_event_json"),
    "qns.d2q.event_xml": ("read_event", "write_event"),
    "qns.d2q.language": ("parse_subscription",),
    "qns.d2q.printing": ("write_readable",),
    "qns.d2q.schema": ("Schema",),
    "qns.d2q.schema_files": ("load_schema",),
    "qns.d2q.shipped": ("AGENCIES", "WEATHER"),
    "qns.d2q.subscription_xml": ("read_subscription", "write_subscription"),
    "qns.d2q.typed_values": ("TypedValues",),
    "qns.errors": (
        "Busy",
        "DocumentError",
        "DuplicateId",
        "FederationError",
        "LanguageError",
        "LimitExceeded",
        "NameNotKnown",
        "NotAllowed",
        "QnsError",
        "SchemaError",
        "StoreFailed",
        "StoreFull",
        "Unsatisfiable",
        "ValueRefused",
    ),
    "qns.iil.cursor": ("CursorAhead",),
    "qns.iil.deliveries_dropped": ("DeliveriesDropped", "Dropped"),
    "qns.iil.requests": ("Published", "Subscribed", "SubscriptionInfo", "Unsubscribed"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    """Loads an exported name from its module on first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
