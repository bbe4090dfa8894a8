package truth;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Timer;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.IntStream;

/**
 * Sick: all threads of a pool wait inside their tasks. The second argument says for what.
 * Well: they wait as they should, by the same methods.
 * Virtual threads need JDK 21; this is compiled for 8, hence the reflection.
 */
public final class Pools {
    private static boolean sick;
    private static int made;
    private static volatile double sink;

    /** Hands connections out, as the pools of databases' connections do. */
    static final class ConnectionPool {
        private final BlockingQueue<Object> free = new LinkedBlockingQueue<>();

        ConnectionPool(int size) {
            for (int i = 0; i < size; i++) free.add(new Object());
        }

        Object getConnection() throws InterruptedException {
            Object c = free.poll(3, TimeUnit.SECONDS);
            if (c == null) throw new IllegalStateException("no connection");
            return c;
        }

        void giveBack(Object c) {
            free.add(c);
        }
    }

    public static void main(String[] args) throws Exception {
        sick = Ward.sick(args);
        switch (args[1]) {
            case "connections": connections(20, 8); break;
            case "leaked": leaked(12); break;
            case "room": room(16); break;
            case "permits": permits(work -> Ward.start("permit-" + made++, work), 8); break;
            case "nested": nested(2); break;
            case "children": children(4); break;
            case "barrier": barrier(5); break;
            case "idle": idle(); break;
            case "batch": batch(); break;
            case "virtual-peer": virtualPeer(300, Integer.parseInt(args[2])); break;
            case "virtual-lock": virtualLock(300); break;
            case "virtual-permits": permits(Pools::virtual, 300); break;
            default: throw new IllegalArgumentException(args[1]);
        }
        Thread.sleep(500);
        Ward.serve();
    }

    interface Starter {
        void start(Ward.Work work) throws Exception;
    }

    /** Works for some milliseconds. */
    static void work(double rounds) {
        double x = 1;
        for (int i = 0; i < rounds * 10_000; i++) x = Math.sqrt(x + i);
        sink = x;
    }

    static ExecutorService pool(String name, int threads) {
        return Executors.newFixedThreadPool(threads, Ward.daemons(name));
    }

    static void always(ExecutorService pool, int threads, Ward.Work work) {
        for (int i = 0; i < threads; i++) {
            pool.submit(() -> {
                while (true) {
                    try {
                        work.run();
                    } catch (IllegalStateException noConnection) {
                        Thread.sleep(1);
                    }
                }
            });
        }
    }

    /** Sick: those that have a connection wait for a database that does not answer. */
    static void connections(int threads, int size) throws Exception {
        ConnectionPool connections = new ConnectionPool(size);
        ServerSocket database = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        always(pool("query-", threads), threads, () -> {
            Object c = connections.getConnection();
            try {
                if (sick) ask(database);
                work(1);
            } finally {
                connections.giveBack(c);
            }
            Thread.sleep(100);
        });
    }

    static void ask(ServerSocket server) throws Exception {
        try (Socket s = new Socket(server.getInetAddress(), server.getLocalPort())) {
            s.getInputStream().read();
        }
    }

    /** Sick: connections are not given back. */
    static void leaked(int threads) {
        ConnectionPool connections = new ConnectionPool(threads);
        always(pool("audit-", threads), threads, () -> {
            Object c = connections.getConnection();
            work(1);
            Thread.sleep(50);
            if (!sick) connections.giveBack(c);
        });
    }

    /** Sick: the consumer has died. Well: it is slower than the producers. */
    static void room(int threads) {
        BlockingQueue<Object> queue = new ArrayBlockingQueue<>(10);
        for (int i = 0; i < threads; i++) Ward.forever("producer-" + i, () -> queue.put("item"));
        Ward.start("consumer", () -> {
            for (int i = 0; !sick || i < 5; i++) {
                queue.take();
                Thread.sleep(30);
            }
        });
    }

    /** Sick: permits are taken and not given back. */
    static void permits(Starter starter, int threads) throws Exception {
        Semaphore permits = new Semaphore(2);
        for (int i = 0; i < threads; i++) {
            starter.start(() -> {
                while (true) {
                    permits.acquire();
                    Thread.sleep(5);
                    if (!sick) permits.release();
                }
            });
        }
    }

    /** Sick: tasks of a pool wait for tasks that they gave to the same pool. Well: to another one, which is at work. */
    static void nested(int threads) {
        ExecutorService outer = pool("report-", threads);
        ExecutorService inner = sick ? outer : pool("page-", 2);
        CyclicBarrier together = new CyclicBarrier(threads);
        always(outer, threads, () -> {
            together.await();
            Future<?> page = inner.submit(() -> work(sick ? 1 : 20_000));
            page.get();
        });
    }

    /** Sick: child processes wait for input, and end with this JVM. Well: they compute. */
    static void children(int threads) {
        always(pool("convert-", threads), threads, () -> {
            String script = sick ? "cat" : "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.2";
            new ProcessBuilder("sh", "-c", script).start().waitFor();
        });
    }

    /** Sick: one party of a barrier never comes. Well: one party comes late. */
    static void barrier(int threads) {
        CyclicBarrier phase = new CyclicBarrier(threads + 1);
        for (int i = 0; i < threads; i++) Ward.forever("phase-" + i, () -> {
            work(1);
            phase.await();
        });
        if (!sick) Ward.forever("late", () -> {
            Thread.sleep(700);
            phase.await();
        });
    }

    /** Well: pools of all kinds without work, and consumers of empty queues. */
    static void idle() throws Exception {
        Callable<Object> nothing = () -> null;
        for (ExecutorService e : Arrays.asList(pool("fixed-", 8), Executors.newCachedThreadPool(Ward.daemons("cached-")),
            Executors.newScheduledThreadPool(8, Ward.daemons("scheduled-")), new ForkJoinPool(8))) {
            List<Callable<Object>> all = new ArrayList<>();
            for (int i = 0; i < 20; i++) all.add(nothing);
            e.invokeAll(all);
        }
        for (int i = 0; i < 5; i++) new Timer("timer-" + i, true);
        BlockingQueue<Object> empty = new LinkedBlockingQueue<>();
        always(pool("consumer-", 6), 6, empty::take);
        for (int i = 0; i < 6; i++) Ward.forever("handler-" + i, () -> empty.poll(1, TimeUnit.MINUTES));
        Object bell = new Object();
        for (int i = 0; i < 6; i++) Ward.forever("listener-" + i, () -> {
            synchronized (bell) {
                bell.wait();
            }
        });
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        for (int i = 0; i < 4; i++) Ward.forever("acceptor-" + i, server::accept);
        for (int i = 0; i < 6; i++) Ward.forever("poller-" + i, () -> Thread.sleep(60_000));
    }

    /** Well: main and some threads wait for the results of a pool that is at work. */
    static void batch() {
        ExecutorService pool = pool("compute-", 3);
        List<Callable<Object>> parts = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            parts.add(() -> {
                for (int n = 0; n < 400; n++) {
                    work(1);
                    Thread.sleep(1);
                }
                return null;
            });
        }
        for (int i = 0; i < 4; i++) Ward.forever("submit-" + i, () -> pool.invokeAll(parts));
        for (int i = 0; i < 4; i++) {
            Ward.forever("stream-" + i, () -> {
                IntStream.range(0, 500).parallel().forEach(n -> work(0.2));
                CompletableFuture.runAsync(() -> work(0.1)).join();
                Thread.sleep(20);
            });
        }
    }

    /** Sick: virtual threads have asked a service that does not answer. Well: they wait for clients, in the same way. */
    static void virtualPeer(int threads, int port) throws Exception {
        CountDownLatch all = new CountDownLatch(threads);
        ServerSocket server = new ServerSocket(sick ? 0 : port, threads, InetAddress.getLoopbackAddress());
        for (int i = 0; i < threads; i++) {
            virtual(() -> {
                Socket s = sick ? new Socket(server.getInetAddress(), port) : server.accept();
                all.countDown();
                s.getInputStream().read();
            });
        }
        all.await();
    }

    /** Sick: virtual threads wait for a lock whose owner waits. Well: each has it for a moment. */
    static void virtualLock(int threads) throws Exception {
        ReentrantLock lock = new ReentrantLock();
        Ward.forever("owner", () -> {
            lock.lock();
            Thread.sleep(sick ? 600_000 : 1);
            lock.unlock();
            Thread.sleep(100);
        });
        Thread.sleep(100);
        for (int i = 0; i < threads; i++) {
            virtual(() -> {
                while (true) {
                    lock.lock();
                    lock.unlock();
                    Thread.sleep(200);
                }
            });
        }
    }

    private static void virtual(Ward.Work work) throws Exception {
        Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> {
            try {
                work.run();
            } catch (Exception wrong) {
                wrong.printStackTrace();
            }
        });
    }
}
