<?php
// Another organisation talks to the peer of INPS: hello, changeSub, notify.
// It plays CoC, so the peer of CoC must not run meanwhile: php organisation.php http://127.0.0.1:8701/

$base = $argv[1] ?? 'http://127.0.0.1:8701/';
$me = 'CoC';
$inps = new SoapClient($base . 'peer?wsdl', [
    'features' => SOAP_SINGLE_ELEMENT_ARRAYS,
    'cache_wsdl' => WSDL_CACHE_NONE,
]);
$origin = ['organisation' => $me, 'document' => 1];  // 1: the version of the federation document

// hello: where do we stand? `joined` is what the federation document says of an organisation.
$hello = [
    'joined' => 1, 'epoch' => 1, 'number' => 0,
    'heldEpoch' => 0, 'heldVersion' => 0, 'heldDigest' => '',
    'standing' => ['joined' => 1, 'own' => 1, 'consumerEpoch' => 1, 'epoch' => 0, 'last' => 0],
    'version' => 0, 'digest' => '',
];
$theirs = $inps->hello(['origin' => $origin, 'hello' => $hello])->hello;
echo "hello from INPS, which joined with version {$theirs->joined}\n";

// The view that INPS has of us is in force from now on, it hears: its subscribers are served.
$hello['heldEpoch'] = $theirs->epoch;
$hello['heldVersion'] = $theirs->version;
$hello['heldDigest'] = $theirs->digest;
$hello['number'] = $theirs->standing->last;  // nothing was sent beyond what has arrived
$inps->hello(['origin' => $origin, 'hello' => $hello]);

// changeSub: what we want to hear from INPS, told anew. The digest is the sum of the elements'
// SHA-256; with one element it is that.
$wanted = '<subscription xmlns="urn:qns:d2q:1" class="Enterprise/Holder"/>';
$changed = $inps->changeSub([
    'origin' => $origin,
    'joined' => $theirs->joined, 'own' => 1, 'epoch' => 1,
    'version' => $theirs->heldVersion + 1,
    'added' => [$wanted],
    'digest' => hash('sha256', $wanted),
]);
echo isset($changed->changed) ? "changed\n" : "send all\n";

// notify: an event under the next number of our stream to INPS.
$number = $theirs->standing->last + 1;
$id = uniqid('php-');
$xml = <<<XML
    <event xmlns="urn:qns:d2q:1" id="$id" class="Enterprise/Holder" source="$me">
      <data><property id="p1" name="Name">Niccolò Rossi</property></data>
      <quality dimension="accuracy"><value of="p1">0.3</value></quality>
    </event>
    XML;
$notified = $inps->notify([
    'origin' => $origin,
    'notification' => [[
        'source' => $me, 'joined' => 1, 'epoch' => 1, 'sequence' => $number,
        'event' => $id, 'xml' => $xml, 'remaining' => 60,
        'entry' => [
            'receiver' => 'INPS', 'joined' => $theirs->joined,
            'epoch' => 1, 'number' => $number, 'confirmed' => 0,
        ],
        'path' => [$me],
    ]],
]);
$outcome = $notified->outcome[0];
echo $outcome->taken ? "taken\n" : "not taken: {$outcome->reason}\n";

// A fault: nobody may speak for an organisation that is not in the federation.
try {
    $inps->gossip(['origin' => ['organisation' => 'Nobody', 'document' => 1]]);
} catch (SoapFault $fault) {
    foreach ($fault->detail as $kind => $told) {
        echo "$kind: {$told->problem}\n";
    }
}
