"""Acts as the peer of CoC and calls the peer of INPS: hello, changeSub, notify.

It plays CoC, so the peer of CoC must not run meanwhile.

python organisation.py http://127.0.0.1:8701/
python organisation.py https://127.0.0.1:9701/ FOLDER     (with the certificates in the folder)
"""

import sys
from hashlib import sha256
from uuid import uuid4

import zeep
from lxml import etree
from tls import transport

base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8701/"
me = "CoC"
over_tls = transport(sys.argv[2], me) if len(sys.argv) > 2 else None
inps = zeep.Client(f"{base}peer?wsdl", transport=over_tls).service
origin = {"organisation": me, "document": 1}  # its version; the answer has the newest


def digest(elements: list[str]) -> str:
    """Returns the digest of a view: the sum of the SHA-256 of its elements modulo 2^256."""
    total = sum(int.from_bytes(sha256(each.encode()).digest(), "big") for each in set(elements))
    return f"{total % 2**256:064x}"


# hello compares the states of both peers. `joined` is from the federation document.
hello = {
    "joined": 1,
    "epoch": 1,
    "number": 0,
    "heldEpoch": 0,
    "heldVersion": 0,
    "heldDigest": digest([]),
    "standing": {"joined": 1, "own": 1, "consumerEpoch": 1, "epoch": 0, "last": 0},
    "version": 0,
    "digest": digest([]),
}
answer = inps.hello(origin=origin, hello=hello)
theirs, origin["document"] = answer.hello, answer.origin.document
print("hello from INPS, which joined with version", theirs.joined)

# This hello reports that the view of INPS is in force at CoC, so its subscriptions are stable.
hello["heldEpoch"] = theirs.epoch
hello["heldVersion"] = theirs.version
hello["heldDigest"] = theirs.digest
hello["number"] = theirs.standing.last  # every number that was sent has arrived
inps.hello(origin=origin, hello=hello)

# changeSub without `base` sends a complete new view.
wanted = [
    '<subscription xmlns="urn:qns:d2q:1" class="Enterprise/Holder"/>',
    '<subscription xmlns="urn:qns:d2q:1" class="Enterprise" only="true"/>',
]
answer = inps.changeSub(
    origin=origin,
    joined=theirs.joined,
    own=1,
    epoch=1,
    version=theirs.heldVersion + 1,
    added=wanted,
    digest=digest(wanted),
)
print("changed" if answer.changed else "send all")

# notify sends an event with the next number of the stream from CoC to INPS.
number = theirs.standing.last + 1
id = f"zeep-{uuid4()}"
xml = f"""<event xmlns="urn:qns:d2q:1" id="{id}" class="Enterprise/Holder" source="{me}">
  <data><property id="p1" name="Name">Niccolò Rossi</property></data>
  <quality dimension="accuracy"><value of="p1">0.3</value></quality>
</event>"""
entry = {"receiver": "INPS", "joined": theirs.joined, "epoch": 1, "number": number, "confirmed": 0}
notification = {
    "source": me,
    "joined": 1,
    "epoch": 1,
    "sequence": number,
    "event": id,
    "xml": xml.encode(),
    "remaining": 60,
    "entry": entry,
    "path": [me],
}
(outcome,) = inps.notify(origin=origin, notification=[notification]).outcome
print("taken" if outcome.taken else f"not taken: {outcome.reason}")

# A request from an organisation that is not in the federation is answered with a fault.
try:
    inps.gossip(origin={"organisation": "Nobody", "document": 1})
except zeep.exceptions.Fault as fault:
    (detail,) = fault.detail
    print(f"{etree.QName(detail).localname}: {detail.findtext('{*}problem')}")
