import java.io.ByteArrayInputStream;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

/** TLS with certificates that are pinned: host names and authorities do not matter. */
final class Tls {
    /** Returns the context for INPS; the caller is an organisation, or null for a user. */
    static SSLContext context(String folder, String caller) throws Exception {
        X509Certificate inps = certificate(Path.of(folder, "INPS.tls.pem"));
        KeyManager[] own = caller == null ? null : keys(folder, caller);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(own, new TrustManager[] {new Pinned(inps)}, null);
        return context;
    }

    /** Reads the key (ECDSA) and the certificate of an organisation. */
    private static KeyManager[] keys(String folder, String name) throws Exception {
        String pem = Files.readString(Path.of(folder, name + ".tls.key"));
        byte[] der = Base64.getMimeDecoder().decode(pem.replaceAll("-----[A-Z ]+-----", ""));
        PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(der));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        Certificate[] chain = {certificate(Path.of(folder, name + ".tls.pem"))};
        store.setKeyEntry(name, key, new char[0], chain);
        KeyManagerFactory factory =
            KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, new char[0]);
        return factory.getKeyManagers();
    }

    private static X509Certificate certificate(Path file) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        byte[] pem = Files.readAllBytes(file);
        return (X509Certificate) factory.generateCertificate(new ByteArrayInputStream(pem));
    }

    /** Trusts exactly one certificate. */
    private static final class Pinned extends X509ExtendedTrustManager {
        private final X509Certificate only;

        Pinned(X509Certificate only) {
            this.only = only;
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type)
            throws CertificateException {
            if (!chain[0].equals(only)) {
                throw new CertificateException("this is not the certificate of INPS");
            }
            chain[0].checkValidity();
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket)
            throws CertificateException {
            checkServerTrusted(chain, type);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
            throws CertificateException {
            checkServerTrusted(chain, type);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type)
            throws CertificateException {
            throw new CertificateException("this program is no server");
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket)
            throws CertificateException {
            checkClientTrusted(chain, type);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
            throws CertificateException {
            checkClientTrusted(chain, type);
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
