<?php
// Acts as the peer of CoC and calls the peer of INPS: hello, changeSub, notify.
// It plays CoC, so the peer of CoC must not run meanwhile: php organisation.php http://127.0.0.1:8701/,
// or over mutual TLS: php organisation.php https://127.0.0.1:9701/ FOLDER

require __DIR__ . '/tls.php';

$base = $argv[1] ?? 'http://127.0.0.1:8701/';
$me = 'CoC';
$inps = new SoapClient($base . 'peer?wsdl', [
    'features' => SOAP_SINGLE_ELEMENT_ARRAYS,
    'cache_wsdl' => WSDL_CACHE_NONE,
] + (isset($argv[2]) ? ['stream_context' => tls($argv[2], $me)] : []));
$origin = ['organisation' => $me, 'document' => 1];  // of the federation document; the answer has the newest

// Returns the digest of a view: the sum of the SHA-256 of its elements modulo 2^256. It adds byte by
// byte, from the last one on, because integers of PHP have 64 bits.
function digest(array $elements): string
{
    $sum = array_fill(0, 32, 0);
    foreach (array_unique($elements) as $element) {
        $hash = hash('sha256', $element, true);
        for ($at = 31, $carry = 0; $at >= 0; $at--) {
            $carry += $sum[$at] + ord($hash[$at]);
            $sum[$at] = $carry & 255;
            $carry >>= 8;
        }
    }
    return bin2hex(pack('C*', ...$sum));
}

// hello compares the states of both peers. `joined` is from the federation document.
$hello = [
    'joined' => 1, 'epoch' => 1, 'number' => 0,
    'heldEpoch' => 0, 'heldVersion' => 0, 'heldDigest' => digest([]),
    'standing' => ['joined' => 1, 'own' => 1, 'consumerEpoch' => 1, 'epoch' => 0, 'last' => 0],
    'version' => 0, 'digest' => digest([]),
];
$answer = $inps->hello(['origin' => $origin, 'hello' => $hello]);
$theirs = $answer->hello;
$origin['document'] = $answer->origin->document;
echo "hello from INPS, which joined with version {$theirs->joined}\n";

// This hello reports that the view of INPS is in force at CoC, so its subscriptions are stable.
$hello['heldEpoch'] = $theirs->epoch;
$hello['heldVersion'] = $theirs->version;
$hello['heldDigest'] = $theirs->digest;
$hello['number'] = $theirs->standing->last;  // every number that was sent has arrived
$inps->hello(['origin' => $origin, 'hello' => $hello]);

// changeSub without `base` sends a complete new view.
$wanted = [
    '<subscription xmlns="urn:qns:d2q:1" class="Enterprise/Holder"/>',
    '<subscription xmlns="urn:qns:d2q:1" class="Enterprise" only="true"/>',
];
$changed = $inps->changeSub([
    'origin' => $origin,
    'joined' => $theirs->joined, 'own' => 1, 'epoch' => 1,
    'version' => $theirs->heldVersion + 1,
    'added' => $wanted,
    'digest' => digest($wanted),
]);
echo isset($changed->changed) ? "changed\n" : "send all\n";

// notify sends an event with the next number of the stream from CoC to INPS.
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

// A request from an organisation that is not in the federation is answered with a fault.
try {
    $inps->gossip(['origin' => ['organisation' => 'Nobody', 'document' => 1]]);
} catch (SoapFault $fault) {
    foreach ($fault->detail as $kind => $told) {
        echo "$kind: {$told->problem}\n";
    }
}
