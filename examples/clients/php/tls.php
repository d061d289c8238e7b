<?php
// Returns the stream context for TLS with the certificates in a folder: that of the peer is pinned,
// and host names do not matter. With $caller, calls are in the name of this organisation.

function tls(string $folder, string $caller = ''): mixed
{
    $options = [
        'cafile' => "$folder/INPS.tls.pem",
        'verify_peer' => true,
        'verify_peer_name' => false,
    ];
    if ($caller !== '') {
        $options['local_cert'] = "$folder/$caller.tls.pem";
        $options['local_pk'] = "$folder/$caller.tls.key";
    }
    return stream_context_create(['ssl' => $options]);
}
