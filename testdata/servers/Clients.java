package servers;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * Asks a server on this machine, on so many connections at once, until its stdin ends.
 *
 *   port          of the server
 *   connections   how many; a few threads ask on all of theirs, and then read the replies
 *   pause         milliseconds between two rounds, 0 if it is not there
 */
public final class Clients {
    private Clients() {}

    private static final int THREADS = 4;
    private static final byte[] REQUEST = "GET /work HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        int count = Integer.parseInt(args[1]);
        int pause = args.length > 2 ? Integer.parseInt(args[2]) : 0;
        Socket[] sockets = new Socket[count];
        for (int i = 0; i < count; i++) {
            sockets[i] = new Socket(InetAddress.getLoopbackAddress(), port);
            sockets[i].setTcpNoDelay(true);
        }
        for (int t = 0; t < Math.min(THREADS, count); t++) {
            int first = t;
            Thread thread = new Thread(() -> ask(sockets, first, pause), "client-" + t);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) {
        }
    }

    private static void ask(Socket[] sockets, int first, int pause) {
        byte[] buffer = new byte[8192];
        try {
            for (;;) {
                for (int i = first; i < sockets.length; i += THREADS) {
                    sockets[i].getOutputStream().write(REQUEST);
                }
                for (int i = first; i < sockets.length; i += THREADS) {
                    reply(sockets[i].getInputStream(), buffer);
                }
                Thread.sleep(pause);
            }
        } catch (IOException | InterruptedException e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    /** Reads one reply: its head, and as much behind it as Content-Length says. */
    private static void reply(InputStream in, byte[] buffer) throws IOException {
        int have = 0;
        int whole = -1;
        while (whole < 0 || have < whole) {
            int n = in.read(buffer, have, buffer.length - have);
            if (n <= 0) {
                throw new IOException("the server is gone");
            }
            have += n;
            String head = new String(buffer, 0, have, StandardCharsets.US_ASCII);
            int end = head.indexOf("\r\n\r\n");
            if (whole < 0 && end >= 0) {
                int at = head.toLowerCase().indexOf("content-length:");
                if (at < 0 || at > end) {
                    throw new IOException("no length: " + head);
                }
                whole = end + 4 + Integer.parseInt(head.substring(at + 15, head.indexOf("\r\n", at)).trim());
            }
        }
    }
}
