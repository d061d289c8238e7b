// Acts as the peer of CoC and calls the peer of INPS: hello, changeSub, notify.
// It plays CoC, so the peer of CoC must not run meanwhile:
// generated/organisation http://127.0.0.1:8701/, or over mutual TLS:
// generated/organisation https://127.0.0.1:9701/ FOLDER

#include "peer.h"

int main(int argc, char **argv) {
    const std::string me = "CoC";
    Peer inps(base_of(argc, argv), "peer", folder_of(argc, argv), me);
    qns__Origin origin;
    origin.organisation = me;
    origin.document = 1;  // of the federation document; the answer has the newest

    // hello compares the states of both peers. `joined` is from the federation document.
    qns__Standing standing;
    standing.joined = standing.own = standing.consumerEpoch = 1;
    standing.epoch = standing.last = 0;
    qns__Greeting greeting;
    greeting.joined = greeting.epoch = 1;
    greeting.number = greeting.heldEpoch = greeting.heldVersion = greeting.version = 0;
    greeting.standing = &standing;
    qns__hello hello;
    hello.origin = &origin;
    hello.hello = &greeting;
    qns__helloResponse answer;
    inps.must(inps.hello(&hello, answer));
    const qns__Greeting theirs = *answer.hello;
    origin.document = answer.origin->document;
    std::cout << "hello from INPS, which joined with version " << theirs.joined << "\n";

    // This hello reports that the view of INPS is in force at CoC, so its subscriptions are stable.
    greeting.heldEpoch = theirs.epoch;
    greeting.heldVersion = theirs.version;
    greeting.heldDigest = theirs.digest;
    greeting.number = theirs.standing->last;  // every number that was sent has arrived
    inps.must(inps.hello(&hello, answer));

    // changeSub sends a complete new view. The digest is the sum of the SHA-256 of its elements; with
    // one element it is the SHA-256 of that element, computed beforehand here.
    qns__changeSub change;
    change.origin = &origin;
    change.joined = theirs.joined;
    change.own = change.epoch = 1;
    change.version = theirs.heldVersion + 1;
    change.added.push_back("<subscription xmlns=\"urn:qns:d2q:1\" class=\"Enterprise/Holder\"/>");
    change.digest =
        "a1d59c9bbf168cbc771e90b694c94673379d702319eeaceeea2067abdd33e5ba";
    qns__changeSubResponse changed;
    inps.must(inps.changeSub(&change, changed));
    std::cout << (changed.changed ? "changed\n" : "send all\n");

    // notify sends an event with the next number of the stream from CoC to INPS.
    const ULONG64 number = theirs.standing->last + 1;
    const std::string id = new_id();
    std::string xml = "<event xmlns=\"urn:qns:d2q:1\" id=\"" + id + "\" class=\"Enterprise/Holder\""
        " source=\"" + me + "\">"
        "<data><property id=\"p1\" name=\"Name\">Niccolò Rossi</property></data>"
        "<quality dimension=\"accuracy\"><value of=\"p1\">0.3</value></quality></event>";
    qns__Entry entry;
    entry.receiver = "INPS";
    entry.joined = theirs.joined;
    entry.epoch = 1;
    entry.number = number;
    entry.confirmed = 0;
    qns__Notification notification;
    notification.source = me;
    notification.joined = notification.epoch = 1;
    notification.sequence = number;
    notification.event = id;
    notification.xml.__ptr = reinterpret_cast<unsigned char *>(xml.data());
    notification.xml.__size = static_cast<int>(xml.size());
    notification.remaining = 60;
    notification.entry = &entry;
    notification.path.push_back(me);
    qns__notify notify;
    notify.origin = &origin;
    notify.notification.push_back(&notification);
    qns__notifyResponse notified;
    inps.must(inps.notify(&notify, notified));
    const qns__Outcome *outcome = notified.outcome.at(0);
    std::cout << (outcome->taken ? "taken" : "not taken: " + *outcome->reason) << "\n";

    // A request from an organisation that is not in the federation is answered with a fault.
    origin.organisation = "Nobody";
    qns__gossip gossip;
    gossip.origin = &origin;
    qns__gossipResponse heard;
    if (inps.gossip(&gossip, heard) != SOAP_OK) inps.print_fault();
}
