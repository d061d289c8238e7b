"""Valid inputs of the decoders, from which the fuzzer starts."""

from __future__ import annotations

from typing import Final

from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.language import parse_subscription
from qns.d2q.schema_xml import write_schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.d2q.subscription_xml import write_subscription
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Entry,
    Envelope,
    Fence,
    FetchDocument,
    Gossip,
    Hello,
    Notification,
    Notify,
    OfferDocument,
    PullGap,
    ReachabilityRow,
    RelayAcknowledgement,
    Skip,
    Standing,
)
from qns.edl.messages import Request as PeerRequest
from qns.federation.document_xml import write_federation
from qns.federation.shipped import AGENCIES_FEDERATION, WEATHER_PARTIAL_FEDERATION
from qns.iil.requests import (
    AcknowledgeDeliveries,
    ListSubscriptions,
    Pause,
    Publish,
    PullDeliveries,
    Renew,
    Request,
    Resume,
    Subscribe,
    Unsubscribe,
)
from tests.d2q.test_document_xml import WRITTEN
from tests.federation.signing import at, root_set, rooted, sign

SUBSCRIPTIONS: Final = (
    'Enterprise/Holder from INPS, INAIL where FiscalCode = "MCLMSM73H17H501F" and '
    "Name.accuracy <= medium",
    '<only Enterprise : {INPS}, Code exists and EntName starts with "A\\"b", _>',
    "Enterprise where Code in {'1', '2'} and Code != '3' and EntName.currency falls below 0.5",
    "Enterprise where EntName.accuracy between 0.1 and 0.9 and EntName.completeness changes by 0.2",
)
EVENTS: Final = tuple(
    EventReader(AGENCIES).from_fields(fields)
    for fields in (
        {"id": "e1", "class": "Enterprise", "source": "CoC"},
        {
            "id": "e2",
            "class": "Enterprise/Holder",
            "source": "INPS",
            "published": "2026-01-02T03:04:05.678Z",
            "available": "INF",
            "data": {"FiscalCode": "A&B<è>", "Enterprise.Code": "7"},
            "quality": {"Name.accuracy": 0.25},
            "previous": {"Name.accuracy": 0.5},
        },
    )
)
_XML: Final = write_event(EVENTS[1], AGENCIES)
_STANDING: Final = Standing(1, 2, 3, 4, 5, (Fence(3, 1), Fence(4, 5)))
_ENTRY: Final = Entry("INPS", 1, 4, 5, 3, (Fence(4, 5),), (Entry("INAIL", 1, 4, 7, 4, (), ()),))
_ELEMENT: Final = write_subscription(parse_subscription(SUBSCRIPTIONS[0], AGENCIES), AGENCIES)
_BODIES: Final[tuple[PeerRequest, ...]] = (
    Notify(
        (
            Notification("CoC", 1, 4, 9, "e2", _XML, 0.0, _ENTRY, ("CoC",)),
            Skip("CoC", 1, _ENTRY, 8, "no longer kept"),
        )
    ),
    ChangeSub(1, 1, 3, None, 2, (_ELEMENT.decode(),), (), "0" * 64),
    Hello(1, 3, 9, (Fence(3, 1),), 2, 7, "a" * 64, _STANDING, 8, "b" * 64),
    PullGap(_STANDING, 9),
    Acknowledge(_STANDING),
    RelayAcknowledgement("CoC", "INPS", _STANDING, ("INPS", "INAIL")),
    Gossip(),
    FetchDocument(),
    OfferDocument(write_federation(AGENCIES_FEDERATION)),
)
PEER_REQUESTS: Final = tuple(
    Envelope("CoC", 3, (ReachabilityRow("CoC", 3, 1, ("INAIL",)),), body) for body in _BODIES
)
LOCAL_REQUESTS: Final[tuple[Request, ...]] = (
    Subscribe("u", SUBSCRIPTIONS[0], id="s1", group="g", lifetime_s=60.0),
    Unsubscribe("u", "s1"),
    Renew("u", "s1", 5.0),
    Pause("u", "s1"),
    Resume("u", "s1"),
    ListSubscriptions("u"),
    Publish(EVENTS[1]),
    PullDeliveries("u", "s1", limit=10),
    AcknowledgeDeliveries("u", "s1", 4),
)
XML_SUBSCRIPTIONS: Final = tuple(
    write_subscription(parse_subscription(text, AGENCIES), AGENCIES) for text in SUBSCRIPTIONS
)
_ROOTED: Final = rooted(AGENCIES_FEDERATION, root_set(1, 1, 1))
SIGNED_FEDERATION: Final = sign(_ROOTED.with_roots(root_set(2, 2, 2, 3), at(1000)), 1, 2, 3)
FEDERATIONS: Final = tuple(
    write_federation(each)
    for each in (AGENCIES_FEDERATION, WEATHER_PARTIAL_FEDERATION, SIGNED_FEDERATION)
)
SCHEMAS: Final = tuple(write_schema(schema) for schema in (AGENCIES, WEATHER))
DOCUMENTS: Final = (WRITTEN,)
