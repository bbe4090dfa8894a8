package truth;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Proves: the requests that take longest are found, with what they waited for.
 *
 * <p>Four threads serve requests, each in a trace of its own (testdata/native/tracing.c), and rest between two of them.
 * Every fifth request is slow: it waits for a lock that another thread holds, for a query, or for a server that does
 * not answer. The command "log" prints each request so far: its number, how many ms it took, and the method in which it spent most of that.
 *
 * <p>Argument: the library of Tracing.Gnu. Without it requests have no traces. With -Dvirtual=true all these threads are
 * virtual ones.
 */
public final class SlowRequests {
    private static final Tracing.Gnu AGENT = new Tracing.Gnu();
    private static final AtomicInteger NUMBERS = new AtomicInteger();
    private static final ConcurrentLinkedQueue<String> LOG = new ConcurrentLinkedQueue<>();
    private static boolean traced;
    private static volatile boolean over;
    private static final ServerSocket SERVER;

    static {
        try {
            SERVER = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private SlowRequests() { }

    static void query(long ms) throws InterruptedException {
        Thread.sleep(ms);
    }

    /** A connection of each thread. Nobody accepts it. */
    private static final ThreadLocal<Socket> SILENT = ThreadLocal.withInitial(() -> {
        try {
            return new Socket(SERVER.getInetAddress(), SERVER.getLocalPort());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    });

    static void call(int ms) {
        try {
            SILENT.get().setSoTimeout(ms);
            SILENT.get().getInputStream().read();
        } catch (SocketTimeoutException e) {
            return;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Waits for a lock that another thread holds for some time. */
    static void book(long ms) throws InterruptedException {
        Object ledger = new Object();
        CountDownLatch held = new CountDownLatch(1);
        start("holder", () -> {
            synchronized (ledger) {
                held.countDown();
                try {
                    Thread.sleep(ms);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        });
        held.await();
        enter(ledger);
    }

    static void enter(Object ledger) {
        synchronized (ledger) {
            NUMBERS.get();
        }
    }

    static String handle(int number) throws InterruptedException {
        query(40);
        switch (number % 10) {
            case 4:
                if (number % 20 == 14) {
                    call(700);
                    return "call";
                }
                query(700);
                return "query";
            case 9:
                book(900);
                return "enter";
            default:
                return "query";
        }
    }

    private static void serve() {
        try {
            while (!over) {
                int number = NUMBERS.incrementAndGet();
                if (number > 255) { // the trace's first byte
                    return;
                }
                if (traced) {
                    AGENT.swap(number, 1);
                }
                long begin = System.nanoTime();
                String most = handle(number);
                long took = System.nanoTime() - begin;
                if (traced) {
                    AGENT.detach();
                }
                LOG.add(number + " " + took / 1_000_000 + " " + most);
                Thread.sleep(150);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** By reflection: the program is compiled for 8. */
    private static void start(String name, Runnable work) {
        if (!Boolean.getBoolean("virtual")) {
            Thread t = new Thread(work, name);
            t.setDaemon(true);
            t.start();
            return;
        }
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            builder = type.getMethod("name", String.class).invoke(builder, name);
            type.getMethod("start", Runnable.class).invoke(builder, work);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) {
        if (args.length > 0) {
            System.load(args[0]);
            traced = true;
        }
        for (int i = 0; i < 4; i++) {
            start("server-" + i, SlowRequests::serve);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("log"), "no such command: " + command);
            out.println(String.join(";", LOG));
        }, () -> over = true);
    }
}
