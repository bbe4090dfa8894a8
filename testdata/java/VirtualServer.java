package truth;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Proves: stacks of virtual threads are whole that do what those of a server do. Needs JDK 21; it is compiled for 8, hence
 * the reflection.
 *
 * Each connection has a virtual thread. It goes down, some levels more than its neighbour, and at its deepest point reads a
 * request, computes for some microseconds and writes the reply, in turns. Where it waits for a request it gives up its carrier.
 * When it goes on, only its topmost frames come back from the heap, and it returns into the next after a system call or two.
 * The clients are a few platform threads of the same JVM. Each sends a request on all of its connections, and then reads
 * the replies.
 *
 *   connections   how many (20)
 *   down          how deep the first one goes (60); number i goes i % 7 levels deeper
 *
 * The command "turns" prints how many requests were answered. The thread of connection i is named "serve-i".
 */
public final class VirtualServer {
    private VirtualServer() {}

    private static final int REQUEST = 64;
    private static final int REPLY = 512;
    private static final int CLIENTS = 4;
    private static final AtomicLong TURNS = new AtomicLong();
    private static volatile boolean stop;

    public static void main(String[] args) throws Exception {
        int count = args.length > 0 ? Integer.parseInt(args[0]) : 20;
        int depth = args.length > 1 ? Integer.parseInt(args[1]) : 60;
        Socket[] ours = new Socket[count];
        Thread[] servers = new Thread[count];
        try (ServerSocket listener = new ServerSocket(0, 512, InetAddress.getLoopbackAddress())) {
            for (int i = 0; i < count; i++) {
                int levels = depth + i % 7;
                ours[i] = new Socket(listener.getInetAddress(), listener.getLocalPort());
                Socket theirs = listener.accept();
                ours[i].setTcpNoDelay(true);
                theirs.setTcpNoDelay(true);
                servers[i] = start("serve-" + i, () -> root(theirs, levels));
            }
        }
        Thread[] clients = new Thread[Math.min(CLIENTS, count)];
        for (int c = 0; c < clients.length; c++) {
            int first = c;
            clients[c] = new Thread(() -> ask(ours, first, clients.length), "client-" + c);
            clients[c].start();
        }
        while (TURNS.get() < 50L * count) {
            Thread.sleep(5);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("turns"), "no such command: " + command);
            out.println(TURNS.get());
        }, () -> {
            stop = true;
            for (Thread client : clients) {
                client.join(60_000);
            }
            for (Socket socket : ours) {
                socket.close();
            }
            for (Thread server : servers) {
                server.join(60_000);
                Control.check(!server.isAlive(), server + " hangs");
            }
        });
    }

    /** Asks on every step-th connection, beginning with the first, until the end. */
    private static void ask(Socket[] sockets, int first, int step) {
        byte[] request = new byte[REQUEST];
        byte[] reply = new byte[REPLY];
        try {
            while (!stop) {
                for (int i = first; i < sockets.length; i += step) {
                    sockets[i].getOutputStream().write(request);
                }
                for (int i = first; i < sockets.length; i += step) {
                    Control.check(readFully(sockets[i].getInputStream(), reply), "no reply");
                }
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static boolean readFully(InputStream in, byte[] bytes) throws IOException {
        for (int have = 0, n; have < bytes.length; have += n) {
            n = in.read(bytes, have, bytes.length - have);
            if (n < 0) {
                return false;
            }
        }
        return true;
    }

    private static void root(Socket socket, int depth) {
        try {
            down(socket, depth, 1, 2, 3, 4, 5, 6, 7, 8);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Its numbers are all wanted behind the call, so its frame is as large as those of real programs. */
    private static long down(Socket socket, int levels, long a, long b, long c, long d, long e, long f, long g, long h) throws IOException {
        long below = levels == 1 ? leaf(socket) : down(socket, levels - 1, b, c, d, e, f, g, h, a + below(levels));
        return below + a * b + c * d + e * f + g * h;
    }

    private static long below(int levels) {
        return levels * 31L;
    }

    private static long leaf(Socket socket) throws IOException {
        byte[] request = new byte[REQUEST];
        byte[] reply = new byte[REPLY];
        long sum = 0;
        while (readFully(socket.getInputStream(), request)) {
            sum += burn(sum);
            reply[0] = (byte) sum;
            send(socket.getOutputStream(), reply);
            TURNS.incrementAndGet();
        }
        return sum;
    }

    private static void send(OutputStream out, byte[] reply) throws IOException {
        out.write(reply);
    }

    private static long burn(long from) {
        long x = from | 1;
        for (int i = 0; i < 3_000; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    private static Thread start(String name, Runnable task) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) type.getMethod("start", Runnable.class).invoke(builder, task);
    }
}
