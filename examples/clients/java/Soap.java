import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/** Calls one port of a peer: writes SOAP 1.1 requests, and reads the replies. */
final class Soap {
    private static final String ENVELOPE = "http://schemas.xmlsoap.org/soap/envelope/";

    /** A typed fault of the peer: InvalidFault, RefusedFault or BusyFault. */
    static final class Fault extends Exception {
        final String kind;
        final String problem;
        final String remedy;

        Fault(Element typed) {
            super(text(typed, "problem"));
            kind = typed.getLocalName();
            problem = text(typed, "problem");
            remedy = text(typed, "remedy");
        }
    }

    private final HttpClient http;
    private final URI address;

    /** Calls a port; with a folder over TLS, and with a caller in the name of this organisation. */
    Soap(String base, String port, String folder, String caller) throws Exception {
        address = URI.create(base + port);
        http = folder == null
            ? HttpClient.newHttpClient()
            : HttpClient.newBuilder().sslContext(Tls.context(folder, caller)).build();
    }

    /** Sends a request with this content (XML without a namespace of its own); returns the reply. */
    Element call(String operation, String content) throws Exception {
        String body = "<soap:Envelope xmlns:soap=\"" + ENVELOPE + "\"><soap:Body>"
            + "<" + operation + " xmlns=\"urn:qns:peer:1\">" + content + "</" + operation + ">"
            + "</soap:Body></soap:Envelope>";
        HttpRequest request = HttpRequest.newBuilder(address)
            .header("Content-Type", "text/xml; charset=utf-8")
            .header("SOAPAction", "\"" + operation + "\"")
            .POST(HttpRequest.BodyPublishers.ofString(body, StandardCharsets.UTF_8))
            .build();
        byte[] answer = http.send(request, HttpResponse.BodyHandlers.ofByteArray()).body();
        Element soapBody = first(parse(answer).getDocumentElement(), "Body");
        Element reply = children(soapBody).iterator().next();
        if (!reply.getLocalName().equals("Fault")) {
            return reply;
        }
        Element detail = first(reply, "detail");
        if (detail == null) {
            throw new IOException(text(reply, "faultstring"));
        }
        throw new Fault(children(detail).iterator().next());
    }

    static Document parse(byte[] xml) throws Exception {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setNamespaceAware(true);
        factory.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
        factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
        return factory.newDocumentBuilder().parse(new ByteArrayInputStream(xml));
    }

    /** Returns an element with a text. */
    static String element(String name, Object text) {
        String escaped = text.toString()
            .replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
        return "<" + name + ">" + escaped + "</" + name + ">";
    }

    static java.util.List<Element> children(Element parent) {
        java.util.List<Element> found = new java.util.ArrayList<>();
        for (Node node = parent.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element element) {
                found.add(element);
            }
        }
        return found;
    }

    /** Returns the first child of this name, or null. */
    static Element first(Element parent, String name) {
        for (Element child : children(parent)) {
            if (child.getLocalName().equals(name)) {
                return child;
            }
        }
        return null;
    }

    /** Returns the text of the first child of this name, or an empty text. */
    static String text(Element parent, String name) {
        Element child = first(parent, name);
        return child == null ? "" : child.getTextContent();
    }

    static long number(Element parent, String name) {
        return Long.parseLong(text(parent, name));
    }
}
