// Acts as a user and as the Quality Factory of INPS: subscribes, publishes, pulls, unsubscribes.
// node user.js http://127.0.0.1:8701/, or over TLS: node user.js https://… FOLDER

import { randomUUID } from 'node:crypto';
import { clientOf } from './tls.js';

const base = process.argv[2] ?? 'http://127.0.0.1:8701/';
const inps = await clientOf(`${base}local?wsdl`, process.argv[3]);

const [subscribed] = await inps.subscribeAsync({
  owner: 'anna',
  subscription: 'Enterprise/Holder where Name.accuracy <= medium',
});
const id = subscribed.id;
console.log('subscribed');

const event = {
  id: `js-${randomUUID()}`,
  class: 'Enterprise/Holder',
  source: 'INPS',
  data: [{ property: 'Name', value: 'Niccolò Rossi' }],
  quality: [{ property: 'Name', dimension: 'accuracy', value: 'low' }],
};
const [published] = await inps.publishAsync({ owner: 'anna', event });
console.log(`published, ${published.again ? 'again' : 'for the first time'}`);

// Waits up to 10 seconds for deliveries after number 0. A real program stores the last number.
const [pulled] = await inps.pullAsync({ owner: 'anna', id, after: 0, wait: 10 });
for (const delivery of pulled.delivery) {
  const xml = Buffer.from(delivery.xml, 'base64').toString('utf8');
  const name = xml.match(/<property[^>]*>([^<]*)</)[1];
  console.log(`pulled ${delivery.number} from ${delivery.source}: ${name}`);
  if (delivery.event !== event.id) throw new Error('this is not what was published');
}

// The peer deletes acknowledged deliveries.
await inps.acknowledgeAsync({ owner: 'anna', id, upto: pulled.delivery.at(-1).number });
const [left] = await inps.pullAsync({ owner: 'anna', id, after: 0 });
console.log(`${left?.delivery?.length ?? 0} left after the acknowledgement`);

try {
  await inps.subscribeAsync({ owner: 'anna', subscription: 'Enterprise/Holdr' });
} catch (error) {
  // InvalidFault, RefusedFault or BusyFault
  for (const [kind, fault] of Object.entries(error.root.Envelope.Body.Fault.detail)) {
    console.log(`${kind}: ${fault.problem} (${fault.remedy})`);
  }
}

await inps.unsubscribeAsync({ owner: 'anna', id });
console.log('unsubscribed');
