import java.io.PrintStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.Set;
import java.util.UUID;
import org.w3c.dom.Element;

/**
 * Acts as the peer of CoC and calls the peer of INPS: hello, changeSub, notify.
 * It plays CoC, so the peer of CoC must not run meanwhile.
 */
final class Organisation {
    private static final String ME = "CoC";
    private static final String EMPTY_VIEW = "0".repeat(64);
    /** The version of the federation document; the answer to a hello has the newest. */
    private static long document = 1;

    public static void main(String[] arguments) throws Exception {
        String base = arguments.length > 0 ? arguments[0] : "http://127.0.0.1:8701/";
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        String folder = arguments.length > 1 ? arguments[1] : null;
        Soap inps = new Soap(base, "peer", folder, ME);

        // hello compares the states of both peers.
        Element welcome = inps.call("hello", hello(0, 0, 0, EMPTY_VIEW));
        Element theirs = Soap.first(welcome, "hello");
        document = Soap.number(Soap.first(welcome, "origin"), "document");
        long joined = Soap.number(theirs, "joined");
        out.println("hello from INPS, which joined with version " + joined);

        // This hello reports that the view of INPS is in force at CoC, so its subscriptions are
        // stable, and that every number that was sent has arrived.
        long last = Soap.number(Soap.first(theirs, "standing"), "last");
        inps.call("hello", hello(last, Soap.number(theirs, "epoch"),
            Soap.number(theirs, "version"), Soap.text(theirs, "digest")));

        // changeSub without `base` sends a complete new view.
        Set<String> wanted = Set.of(
            "<subscription xmlns=\"urn:qns:d2q:1\" class=\"Enterprise/Holder\"/>",
            "<subscription xmlns=\"urn:qns:d2q:1\" class=\"Enterprise\" only=\"true\"/>");
        StringBuilder change = new StringBuilder(origin(ME))
            .append(Soap.element("joined", joined))
            .append(Soap.element("own", 1))
            .append(Soap.element("epoch", 1))
            .append(Soap.element("version", Soap.number(theirs, "heldVersion") + 1));
        for (String element : wanted) {
            change.append(Soap.element("added", element));
        }
        change.append(Soap.element("digest", digest(wanted)));
        Element answer = inps.call("changeSub", change.toString());
        out.println(Soap.first(answer, "changed") != null ? "changed" : "send all");

        // notify sends an event with the next number of the stream from CoC to INPS.
        long number = last + 1;
        String id = "java-" + UUID.randomUUID();
        String xml = "<event xmlns=\"urn:qns:d2q:1\" id=\"" + id + "\" class=\"Enterprise/Holder\""
            + " source=\"" + ME + "\">"
            + "<data><property id=\"p1\" name=\"Name\">Niccolò Rossi</property></data>"
            + "<quality dimension=\"accuracy\"><value of=\"p1\">0.3</value></quality></event>";
        Element notified = inps.call("notify", origin(ME) + "<notification>"
            + Soap.element("source", ME)
            + Soap.element("joined", 1)
            + Soap.element("epoch", 1)
            + Soap.element("sequence", number)
            + Soap.element("event", id)
            + Soap.element("xml", base64(xml))
            + Soap.element("remaining", 60)
            + "<entry>"
            + Soap.element("receiver", "INPS")
            + Soap.element("joined", joined)
            + Soap.element("epoch", 1)
            + Soap.element("number", number)
            + Soap.element("confirmed", 0)
            + "</entry>"
            + Soap.element("path", ME)
            + "</notification>");
        Element outcome = Soap.first(notified, "outcome");
        boolean taken = Boolean.parseBoolean(Soap.text(outcome, "taken"));
        out.println(taken ? "taken" : "not taken: " + Soap.text(outcome, "reason"));

        // A request from an organisation that is not in the federation is answered with a fault.
        try {
            inps.call("gossip", origin("Nobody"));
        } catch (Soap.Fault fault) {
            out.println(fault.kind + ": " + fault.problem);
        }
    }

    /** Returns the digest of a view: the sum of the SHA-256 of its elements modulo 2^256. */
    static String digest(Set<String> elements) throws Exception {
        BigInteger sum = BigInteger.ZERO;
        for (String element : elements) {
            byte[] text = element.getBytes(StandardCharsets.UTF_8);
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(text);
            sum = sum.add(new BigInteger(1, hash));
        }
        return String.format("%064x", sum.mod(BigInteger.ONE.shiftLeft(256)));
    }

    private static String origin(String organisation) {
        return "<origin>" + Soap.element("organisation", organisation)
            + Soap.element("document", document) + "</origin>";
    }

    /** Returns a hello of CoC. `joined` is from the federation document. */
    private static String hello(long number, long heldEpoch, long heldVersion, String heldDigest) {
        return origin(ME) + "<hello>"
            + Soap.element("joined", 1)
            + Soap.element("epoch", 1)
            + Soap.element("number", number)
            + Soap.element("heldEpoch", heldEpoch)
            + Soap.element("heldVersion", heldVersion)
            + Soap.element("heldDigest", heldDigest)
            + "<standing>" + Soap.element("joined", 1) + Soap.element("own", 1)
            + Soap.element("consumerEpoch", 1) + Soap.element("epoch", 0)
            + Soap.element("last", 0) + "</standing>"
            + Soap.element("version", 0)
            + Soap.element("digest", EMPTY_VIEW)
            + "</hello>";
    }

    private static String base64(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
