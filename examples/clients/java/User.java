import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import org.w3c.dom.Element;

/** Acts as a user and as the Quality Factory of INPS: subscribes, publishes, pulls, unsubscribes. */
final class User {
    private static final String OWNER = Soap.element("owner", "anna");

    public static void main(String[] arguments) throws Exception {
        String base = arguments.length > 0 ? arguments[0] : "http://127.0.0.1:8701/";
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        String folder = arguments.length > 1 ? arguments[1] : null;
        Soap inps = new Soap(base, "local", folder, null);

        // With contract 2 the reply has `ends`, a dateTime; without it only `expires`, a number.
        Element subscribed = inps.call("subscribe",
            Soap.element("contract", 2) + OWNER
            + Soap.element("subscription", "Enterprise/Holder where Name.accuracy <= medium")
            + Soap.element("lifetime", 3600));
        String id = Soap.element("id", Soap.text(subscribed, "id"));
        OffsetDateTime ends = OffsetDateTime.parse(Soap.text(subscribed, "ends"));
        if (ends.isBefore(OffsetDateTime.now())) {
            throw new IllegalStateException("the subscription has ended already");
        }
        out.println("subscribed");

        String event = "java-" + UUID.randomUUID();
        Element published = inps.call("publish", OWNER + "<event>"
            + Soap.element("id", event)
            + Soap.element("class", "Enterprise/Holder")
            + Soap.element("source", "INPS")
            + "<data>" + Soap.element("property", "Name") + Soap.element("value", "Niccolò Rossi")
            + "</data><quality>" + Soap.element("property", "Name")
            + Soap.element("dimension", "accuracy") + Soap.element("value", "low")
            + "</quality></event>");
        boolean again = Boolean.parseBoolean(Soap.text(published, "again"));
        out.println("published, " + (again ? "again" : "for the first time"));

        // Waits up to 10 seconds for deliveries after number 0. A real program stores the number.
        long last = 0;
        String pull = OWNER + id + Soap.element("after", 0);
        for (Element delivery : Soap.children(inps.call("pull", pull + Soap.element("wait", 10)))) {
            byte[] xml = Base64.getMimeDecoder().decode(Soap.text(delivery, "xml"));
            Element data = Soap.first(Soap.parse(xml).getDocumentElement(), "data");
            last = Soap.number(delivery, "number");
            out.println("pulled " + last + " from " + Soap.text(delivery, "source") + ": "
                + Soap.text(data, "property"));
            if (!Soap.text(delivery, "event").equals(event)) {
                throw new IllegalStateException("this is not what was published");
            }
        }

        // The peer deletes acknowledged deliveries.
        inps.call("acknowledge", OWNER + id + Soap.element("upto", last));
        List<Element> left = Soap.children(inps.call("pull", pull));
        out.println(left.size() + " left after the acknowledgement");

        try {
            inps.call("subscribe", OWNER + Soap.element("subscription", "Enterprise/Holdr"));
        } catch (Soap.Fault fault) {
            out.println(fault.kind + ": " + fault.problem + " (" + fault.remedy + ")");
        }

        inps.call("unsubscribe", OWNER + id);
        out.println("unsubscribed");
    }
}
