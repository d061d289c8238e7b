"""The exported names with their types, for type checkers and editors."""

from qns.cbr.covering import CoveringOrder as CoveringOrder
from qns.cbr.delta import Delta as Delta
from qns.cbr.event import Event as Event
from qns.cbr.index import MatchingIndex as MatchingIndex
from qns.cbr.subscription import Subscription as Subscription
from qns.cbr.witness import Witness as Witness
from qns.cbr.witness import witness as witness
from qns.client.address import PeerUnreachable as PeerUnreachable
from qns.client.async_client import AsyncClient as AsyncClient
from qns.client.async_collection import AsyncCollection as AsyncCollection
from qns.client.async_deliveries import AsyncDeliveryStream as AsyncDeliveryStream
from qns.client.client import Client as Client
from qns.client.collection import Collection as Collection
from qns.client.delivered import Delivered as Delivered
from qns.client.deliveries import DeliveryStream as DeliveryStream
from qns.d2q.event_json import EventReader as EventReader
from qns.d2q.event_json import write_event_json as write_event_json
from qns.d2q.event_xml import read_event as read_event
from qns.d2q.event_xml import write_event as write_event
from qns.d2q.language import parse_subscription as parse_subscription
from qns.d2q.printing import write_readable as write_readable
from qns.d2q.schema import Schema as Schema
from qns.d2q.schema_files import load_schema as load_schema
from qns.d2q.shipped import AGENCIES as AGENCIES
from qns.d2q.shipped import WEATHER as WEATHER
from qns.d2q.subscription_xml import read_subscription as read_subscription
from qns.d2q.subscription_xml import write_subscription as write_subscription
from qns.d2q.typed_values import TypedValues as TypedValues
from qns.errors import Busy as Busy
from qns.errors import DocumentError as DocumentError
from qns.errors import DuplicateId as DuplicateId
from qns.errors import FederationError as FederationError
from qns.errors import LanguageError as LanguageError
from qns.errors import LimitExceeded as LimitExceeded
from qns.errors import NameNotKnown as NameNotKnown
from qns.errors import NotAllowed as NotAllowed
from qns.errors import QnsError as QnsError
from qns.errors import SchemaError as SchemaError
from qns.errors import StoreFailed as StoreFailed
from qns.errors import StoreFull as StoreFull
from qns.errors import Unsatisfiable as Unsatisfiable
from qns.errors import ValueRefused as ValueRefused
from qns.iil.cursor import CursorAhead as CursorAhead
from qns.iil.deliveries_dropped import DeliveriesDropped as DeliveriesDropped
from qns.iil.deliveries_dropped import Dropped as Dropped
from qns.iil.requests import Published as Published
from qns.iil.requests import Subscribed as Subscribed
from qns.iil.requests import SubscriptionInfo as SubscriptionInfo
from qns.iil.requests import Unsubscribed as Unsubscribed

__version__: str
__all__: list[str]
