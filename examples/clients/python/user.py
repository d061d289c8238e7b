"""Acts as a user and as the Quality Factory of INPS: subscribes, publishes, pulls, unsubscribes.

python user.py http://127.0.0.1:8701/
python user.py https://… FOLDER     (over TLS, with the certificate of INPS in the folder)
"""

import sys
from uuid import uuid4

import zeep
from lxml import etree
from tls import transport

base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8701/"
over_tls = transport(sys.argv[2]) if len(sys.argv) > 2 else None
inps = zeep.Client(f"{base}local?wsdl", transport=over_tls).service

# With contract=2 the reply has `ends`, a datetime; without it only `expires`, a number.
subscribed = inps.subscribe(
    contract=2,
    owner="anna",
    subscription="Enterprise/Holder where Name.accuracy <= medium",
    lifetime=3600,
)
assert abs(subscribed.ends.timestamp() - subscribed.expires) < 0.001
print("subscribed")

event = {
    "id": f"zeep-{uuid4()}",
    "class": "Enterprise/Holder",
    "source": "INPS",
    "data": [{"property": "Name", "value": "Niccolò Rossi"}],
    "quality": [{"property": "Name", "dimension": "accuracy", "value": "low"}],
}
published = inps.publish(owner="anna", event=event)
print("published,", "again" if published.again else "for the first time")

# Waits up to 10 seconds for deliveries after number 0. A real program stores the last number.
pulled = inps.pull(owner="anna", id=subscribed.id, after=0, wait=10)
for delivery in pulled:
    name = etree.fromstring(delivery.xml).findtext("{*}data/{*}property")
    print(f"pulled {delivery.number} from {delivery.source}: {name}")
    assert delivery.event == event["id"], "this is not what was published"

# The peer deletes acknowledged deliveries.
inps.acknowledge(owner="anna", id=subscribed.id, upto=pulled[-1].number)
left = inps.pull(owner="anna", id=subscribed.id, after=0) or []
print(len(left), "left after the acknowledgement")

try:
    inps.subscribe(owner="anna", subscription="Enterprise/Holdr")
except zeep.exceptions.Fault as fault:
    (detail,) = fault.detail  # InvalidFault, RefusedFault or BusyFault
    kind = etree.QName(detail).localname
    print(f"{kind}: {detail.findtext('{*}problem')} ({detail.findtext('{*}remedy')})")

inps.unsubscribe(owner="anna", id=subscribed.id)
print("unsubscribed")
