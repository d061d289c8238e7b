// Acts as the peer of CoC and calls the peer of INPS: hello, changeSub, notify.
// It plays CoC, so the peer of CoC must not run meanwhile: node organisation.js http://127.0.0.1:8701/,
// or over mutual TLS: node organisation.js https://127.0.0.1:9701/ FOLDER

import { createHash, randomUUID } from 'node:crypto';
import { clientOf } from './tls.js';

const base = process.argv[2] ?? 'http://127.0.0.1:8701/';
const me = 'CoC';
const inps = await clientOf(`${base}peer?wsdl`, process.argv[3], me);
const origin = { organisation: me, document: 1 }; // of the federation document; the answer has the newest

// Returns the digest of a view: the sum of the SHA-256 of its elements modulo 2^256.
function digest(elements) {
  let sum = 0n;
  for (const element of new Set(elements)) {
    sum += BigInt(`0x${createHash('sha256').update(element, 'utf8').digest('hex')}`);
  }
  return (sum % 2n ** 256n).toString(16).padStart(64, '0');
}

// hello compares the states of both peers. `joined` is from the federation document.
const hello = {
  joined: 1, epoch: 1, number: 0,
  heldEpoch: 0, heldVersion: 0, heldDigest: digest([]),
  standing: { joined: 1, own: 1, consumerEpoch: 1, epoch: 0, last: 0 },
  version: 0, digest: digest([]),
};
const [{ hello: theirs, origin: newest }] = await inps.helloAsync({ origin, hello });
origin.document = newest.document;
console.log(`hello from INPS, which joined with version ${theirs.joined}`);

// This hello reports that the view of INPS is in force at CoC, so its subscriptions are stable.
hello.heldEpoch = theirs.epoch;
hello.heldVersion = theirs.version;
hello.heldDigest = theirs.digest;
hello.number = theirs.standing.last; // every number that was sent has arrived
await inps.helloAsync({ origin, hello });

// changeSub without `base` sends a complete new view.
const wanted = [
  '<subscription xmlns="urn:qns:d2q:1" class="Enterprise/Holder"/>',
  '<subscription xmlns="urn:qns:d2q:1" class="Enterprise" only="true"/>',
];
const [answer] = await inps.changeSubAsync({
  origin,
  joined: theirs.joined, own: 1, epoch: 1,
  version: Number(theirs.heldVersion) + 1,
  added: wanted,
  digest: digest(wanted),
});
console.log(answer.changed ? 'changed' : 'send all');

// notify sends an event with the next number of the stream from CoC to INPS.
const number = Number(theirs.standing.last) + 1;
const id = `js-${randomUUID()}`;
const xml = `<event xmlns="urn:qns:d2q:1" id="${id}" class="Enterprise/Holder" source="${me}">
  <data><property id="p1" name="Name">Niccolò Rossi</property></data>
  <quality dimension="accuracy"><value of="p1">0.3</value></quality>
</event>`;
const [notified] = await inps.notifyAsync({
  origin,
  notification: [{
    source: me, joined: 1, epoch: 1, sequence: number,
    event: id, xml: Buffer.from(xml).toString('base64'), remaining: 60,
    entry: {
      receiver: 'INPS', joined: theirs.joined, epoch: 1, number, confirmed: 0,
    },
    path: [me],
  }],
});
const [outcome] = notified.outcome;
console.log(outcome.taken ? 'taken' : `not taken: ${outcome.reason}`);

// A request from an organisation that is not in the federation is answered with a fault.
try {
  await inps.gossipAsync({ origin: { organisation: 'Nobody', document: 1 } });
} catch (error) {
  for (const [kind, fault] of Object.entries(error.root.Envelope.Body.Fault.detail)) {
    console.log(`${kind}: ${fault.problem}`);
  }
}
