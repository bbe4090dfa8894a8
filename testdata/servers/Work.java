package servers;

import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/** What the servers have in common: what a request makes them do, and how a test talks with them. */
final class Work {
    private Work() {}

    /** Computes for some microseconds. */
    static String reply() {
        StringBuilder b = new StringBuilder();
        long x = System.nanoTime() | 1;
        for (int i = 0; i < 40; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
            b.append(Long.toHexString(x));
        }
        return b.toString();
    }

    /** Asks a peer on this machine. */
    static String ask(int peer) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) URI.create("http://127.0.0.1:" + peer + "/").toURL().openConnection();
        try (InputStream in = connection.getInputStream()) {
            return new String(in.readAllBytes(), StandardCharsets.US_ASCII);
        }
    }

    /** Rests until a test says a word, and ends. */
    static void rest() throws IOException {
        System.out.println("READY");
        System.out.flush();
        System.in.read();
        System.out.println("OK");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void serve(int port) throws IOException {
        System.out.println("READY " + port);
        System.out.flush();
        InputStream in = System.in;
        while (in.read() >= 0) {
        }
    }
}
