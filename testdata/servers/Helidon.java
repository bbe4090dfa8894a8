package servers;

import io.helidon.webserver.WebServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A Helidon server: a virtual thread for each connection. It prints READY and its port, and serves until its stdin ends.
 *
 *   nothing | peer | permits | lock   what a request does: it answers, asks a peer, or needs what another thread keeps
 *   port                              of the peer
 */
public final class Helidon {
    private static final Semaphore permits = new Semaphore(10);
    private static final ReentrantLock ledger = new ReentrantLock();

    private Helidon() {}

    public static void main(String[] args) throws Exception {
        String does = args.length > 0 ? args[0] : "nothing";
        int peer = args.length > 1 ? Integer.parseInt(args[1]) : 0;
        Thread.ofPlatform().daemon().name("auditor").start(() -> keep(does));
        WebServer server = WebServer.builder()
                .host("127.0.0.1")
                .port(0)
                .routing(routing -> routing.get("/work",
                        (request, response) -> response.send(answer(does, peer).getBytes(StandardCharsets.US_ASCII))))
                .build()
                .start();
        Work.serve(server.port());
        server.stop();
    }

    private static String answer(String does, int peer) throws IOException, InterruptedException {
        switch (does) {
            case "peer":
                return Work.ask(peer);
            case "permits":
                permits.acquire();
                permits.release();
                break;
            case "lock":
                ledger.lock();
                ledger.unlock();
                break;
            default:
        }
        return Work.reply();
    }

    /** Takes what requests need, and does not give it back. */
    private static void keep(String does) {
        if (does.equals("permits")) {
            permits.acquireUninterruptibly(10);
        } else if (does.equals("lock")) {
            ledger.lock();
        }
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
