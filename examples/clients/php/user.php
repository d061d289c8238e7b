<?php
// Acts as a user and as the Quality Factory of INPS: subscribes, publishes, pulls, unsubscribes.
// php user.php http://127.0.0.1:8701/, or over TLS: php user.php https://… FOLDER

require __DIR__ . '/tls.php';

$base = $argv[1] ?? 'http://127.0.0.1:8701/';
$inps = new SoapClient($base . 'local?wsdl', [
    'features' => SOAP_SINGLE_ELEMENT_ARRAYS,  // a list with one element stays a list
    'cache_wsdl' => WSDL_CACHE_NONE,
] + (isset($argv[2]) ? ['stream_context' => tls($argv[2])] : []));

$subscribed = $inps->subscribe([
    'owner' => 'anna',
    'subscription' => 'Enterprise/Holder where Name.accuracy <= medium',
]);
$id = $subscribed->id;
echo "subscribed\n";

$event = [
    'id' => uniqid('php-'),
    'class' => 'Enterprise/Holder',
    'source' => 'INPS',
    'data' => [['property' => 'Name', 'value' => 'Niccolò Rossi']],
    'quality' => [['property' => 'Name', 'dimension' => 'accuracy', 'value' => 'low']],
];
$published = $inps->publish(['owner' => 'anna', 'event' => $event]);
echo 'published, ', $published->again ? 'again' : 'for the first time', "\n";

// Waits up to 10 seconds for deliveries after number 0. A real program stores the last number.
$pulled = $inps->pull(['owner' => 'anna', 'id' => $id, 'after' => 0, 'wait' => 10]);
foreach ($pulled->delivery ?? [] as $delivery) {
    $xml = simplexml_load_string($delivery->xml);  // SoapClient has decoded the base64
    echo "pulled {$delivery->number} from {$delivery->source}: {$xml->data->property}\n";
    if ($delivery->event !== $event['id']) {
        throw new RuntimeException('this is not what was published');
    }
}

// The peer deletes acknowledged deliveries.
$inps->acknowledge(['owner' => 'anna', 'id' => $id, 'upto' => $delivery->number]);
$left = $inps->pull(['owner' => 'anna', 'id' => $id, 'after' => 0]);
echo count($left->delivery ?? []), " left after the acknowledgement\n";

try {
    $inps->subscribe(['owner' => 'anna', 'subscription' => 'Enterprise/Holdr']);
} catch (SoapFault $fault) {
    foreach ($fault->detail as $kind => $words) {  // InvalidFault, RefusedFault or BusyFault
        echo "$kind: {$words->problem} ({$words->remedy})\n";
    }
}

$inps->unsubscribe(['owner' => 'anna', 'id' => $id]);
echo "unsubscribed\n";
