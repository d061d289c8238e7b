// Options of the soap package for TLS with the certificates in a folder: that of the peer is pinned,
// and host names do not matter. With a caller, calls are in the name of this organisation.

import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import soap from 'soap';

export function tls(folder, caller) {
  const read = (name) => readFileSync(`${folder}/${name}`);
  const own = caller
    ? { cert: read(`${caller}.tls.pem`), key: read(`${caller}.tls.key`) }
    : {};
  return new Agent({ ...own, ca: read('INPS.tls.pem'), checkServerIdentity: () => undefined });
}

// Returns the client for the WSDL at an address; with a folder it calls over TLS.
export async function clientOf(address, folder, caller) {
  if (folder === undefined) return soap.createClientAsync(address);
  const httpsAgent = tls(folder, caller);
  const client = await soap.createClientAsync(address, { wsdl_options: { httpsAgent } });
  client.setSecurity({ addOptions: (options) => Object.assign(options, { httpsAgent }) });
  return client;
}
