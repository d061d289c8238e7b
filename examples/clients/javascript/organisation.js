// Another organisation talks to the peer of INPS: hello, changeSub, notify.
// It plays CoC, so the peer of CoC must not run meanwhile: node organisation.js http://127.0.0.1:8701/

import { createHash, randomUUID } from 'node:crypto';
import soap from 'soap';

const base = process.argv[2] ?? 'http://127.0.0.1:8701/';
const me = 'CoC';
const inps = await soap.createClientAsync(`${base}peer?wsdl`);
const origin = { organisation: me, document: 1 }; // 1: the version of the federation document

// hello: where do we stand? `joined` is what the federation document says of an organisation.
const hello = {
  joined: 1, epoch: 1, number: 0,
  heldEpoch: 0, heldVersion: 0, heldDigest: '',
  standing: { joined: 1, own: 1, consumerEpoch: 1, epoch: 0, last: 0 },
  version: 0, digest: '',
};
const [{ hello: theirs }] = await inps.helloAsync({ origin, hello });
console.log(`hello from INPS, which joined with version ${theirs.joined}`);

// The view that INPS has of us is in force from now on, it hears: its subscribers are served.
hello.heldEpoch = theirs.epoch;
hello.heldVersion = theirs.version;
hello.heldDigest = theirs.digest;
hello.number = theirs.standing.last; // nothing was sent beyond what has arrived
await inps.helloAsync({ origin, hello });

// changeSub: what we want to hear from INPS, told anew. The digest is the sum of the elements'
// SHA-256; with one element it is that.
const wanted = '<subscription xmlns="urn:qns:d2q:1" class="Enterprise/Holder"/>';
const [answer] = await inps.changeSubAsync({
  origin,
  joined: theirs.joined, own: 1, epoch: 1,
  version: Number(theirs.heldVersion) + 1,
  added: [wanted],
  digest: createHash('sha256').update(wanted).digest('hex'),
});
console.log(answer.changed ? 'changed' : 'send all');

// notify: an event under the next number of our stream to INPS.
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

// A fault: nobody may speak for an organisation that is not in the federation.
try {
  await inps.gossipAsync({ origin: { organisation: 'Nobody', document: 1 } });
} catch (error) {
  for (const [kind, told] of Object.entries(error.root.Envelope.Body.Fault.detail)) {
    console.log(`${kind}: ${told.problem}`);
  }
}
