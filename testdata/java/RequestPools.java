package truth;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Proves: threads of pools, each of which works for some microseconds and waits for the next request, have as many samples
 * as they use CPU time, and pools have the shares that they use.
 *
 * Two pools of the same number of threads; every few milliseconds each gets some requests, those of one with twice the
 * work of the other's.
 *
 * Arguments: threads of each pool (150), requests at once (20), work of a request, in rounds of a loop (20000),
 * milliseconds between two times (15).
 */
public final class RequestPools {
    private static volatile long sink;

    private RequestPools() { }

    static void work(int rounds) {
        long x = rounds;
        for (int i = 0; i < rounds; i++) x = x * 31 + i;
        sink = x;
    }

    private static ThreadPoolExecutor pool(String name, int threads) {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(threads, threads, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(),
            task -> {
                Thread t = new Thread(task, name);
                t.setDaemon(true);
                return t;
            });
        pool.prestartAllCoreThreads();
        return pool;
    }

    public static void main(String[] args) throws Exception {
        int threads = args.length > 0 ? Integer.parseInt(args[0]) : 150;
        int requests = args.length > 1 ? Integer.parseInt(args[1]) : 20;
        int rounds = args.length > 2 ? Integer.parseInt(args[2]) : 20000;
        long pause = args.length > 3 ? Long.parseLong(args[3]) : 15;
        ThreadPoolExecutor much = pool("much", threads);
        ThreadPoolExecutor little = pool("little", threads);
        Thread feeder = new Thread(() -> feed(much, little, requests, rounds, pause), "feeder");
        feeder.setDaemon(true);
        feeder.start();
        Thread.sleep(2000); // until the code is compiled
        Control.serve((command, out) -> {
            throw new IllegalArgumentException("no such command: " + command);
        }, () -> { });
    }

    private static void feed(ThreadPoolExecutor much, ThreadPoolExecutor little, int requests, int rounds, long pause) {
        try {
            for (;;) {
                for (int i = 0; i < requests; i++) {
                    much.execute(() -> work(2 * rounds));
                    little.execute(() -> work(rounds));
                }
                Thread.sleep(pause);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
