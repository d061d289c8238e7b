// Acts as a user and as the Quality Factory of INPS: subscribes, publishes, pulls, unsubscribes.
// generated/user http://127.0.0.1:8701/, or over TLS: generated/user https://… FOLDER

#include "peer.h"

int main(int argc, char **argv) {
    Peer inps(base_of(argc, argv), "local", folder_of(argc, argv));
    const std::string owner = "anna";

    qns__subscribe wanted;
    wanted.owner = owner;
    wanted.subscription = "Enterprise/Holder where Name.accuracy <= medium";
    qns__subscribeResponse subscribed;
    inps.must(inps.subscribe(&wanted, subscribed));
    std::cout << "subscribed\n";

    qns__Data name;
    name.property = "Name";
    name.value = "Niccolò Rossi";
    qns__Quality accuracy;
    accuracy.property = "Name";
    accuracy.dimension = "accuracy";
    std::string low = "low";
    accuracy.value = &low;
    qns__Event event;
    event.id = new_id();
    event.class_ = "Enterprise/Holder";
    event.source = "INPS";
    event.data.push_back(&name);
    event.quality.push_back(&accuracy);
    qns__publish publication;
    publication.owner = owner;
    publication.event = &event;
    qns__publishResponse published;
    inps.must(inps.publish(&publication, published));
    std::cout << "published, " << (published.again ? "again" : "for the first time") << "\n";

    // Waits up to 10 seconds for deliveries after number 0. A real program stores the last number.
    qns__pull pull;
    pull.owner = owner;
    pull.id = subscribed.id;
    pull.after = 0;
    double seconds = 10;
    pull.wait = &seconds;
    qns__pullResponse pulled;
    inps.must(inps.pull(&pull, pulled));
    ULONG64 last = 0;
    for (const qns__Delivery *delivery : pulled.delivery) {
        std::string xml(reinterpret_cast<char *>(delivery->xml.__ptr), delivery->xml.__size);
        auto begin = xml.find('>', xml.find("<property")) + 1;
        std::cout << "pulled " << delivery->number << " from " << delivery->source << ": "
                  << xml.substr(begin, xml.find('<', begin) - begin) << "\n";
        if (delivery->event != event.id) {
            std::cout << "this is not what was published\n";
            return 1;
        }
        last = delivery->number;
    }

    // The peer deletes acknowledged deliveries.
    qns__acknowledge done;
    done.owner = owner;
    done.id = subscribed.id;
    done.upto = last;
    qns__acknowledgeResponse acknowledged;
    inps.must(inps.acknowledge(&done, acknowledged));
    pull.wait = nullptr;
    qns__pullResponse left;
    inps.must(inps.pull(&pull, left));
    std::cout << left.delivery.size() << " left after the acknowledgement\n";

    wanted.subscription = "Enterprise/Holdr";
    qns__subscribeResponse refused;
    if (inps.subscribe(&wanted, refused) != SOAP_OK) inps.print_fault();

    qns__unsubscribe end;
    end.owner = owner;
    end.id = subscribed.id;
    qns__unsubscribeResponse ended;
    inps.must(inps.unsubscribe(&end, ended));
    std::cout << "unsubscribed\n";
}
