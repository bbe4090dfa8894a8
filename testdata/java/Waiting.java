package truth;

import java.io.PrintStream;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that wait for locks of three classes, and know for how long.
 *
 * "begin" starts the threads. "wait MILLIS" lets them do that for so long; the answer is a line for each class: nanoseconds that were waited for its
 * locks, by System.nanoTime() before and after, and its name.
 */
public final class Waiting {
    static final class Ledger {}

    static final class Cache {}

    static final class Gauge extends ReentrantLock {}

    static final Ledger ledger = new Ledger();
    static final Cache cache = new Cache();
    static final Gauge gauge = new Gauge();
    static final AtomicLong[] waited = {new AtomicLong(), new AtomicLong(), new AtomicLong()};
    static final int THREADS = 9;
    static final CyclicBarrier gate = new CyclicBarrier(THREADS + 1);
    static volatile long end;

    private Waiting() {}

    public static void main(String[] args) throws Exception {
        Control.serve(Waiting::run, () -> {});
    }

    private static void run(String line, PrintStream out) throws Exception {
        String[] word = line.split(" ");
        if (word[0].equals("begin")) {
            begin();
            return;
        }
        if (!word[0].equals("wait")) {
            throw new IllegalArgumentException(line);
        }
        for (AtomicLong w : waited) {
            w.set(0);
        }
        end = System.nanoTime() + Long.parseLong(word[1]) * 1000000;
        gate.await();
        gate.await();
        for (int i = 0; i < 3; i++) {
            out.println(waited[i].get() + " " + new String[] {"Ledger", "Cache", "Gauge"}[i]);
        }
    }

    private static void begin() {
        for (int i = 0; i < THREADS; i++) {
            int kind = i % 3;
            Thread t = new Thread(() -> serve(kind), "waits-" + i);
            t.setDaemon(true);
            t.start();
        }
    }

    private static void serve(int kind) {
        try {
            for (;;) {
                gate.await();
                contend(kind);
                gate.await();
            }
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static void contend(int kind) {
        long sum = 0;
        while (System.nanoTime() < end) {
            long began = System.nanoTime();
            switch (kind) {
                case 0: sum += inLedger(began); break;
                case 1: sum += inCache(began); break;
                default: sum += inGauge(began);
            }
            sleep(1);
        }
        waited[kind].addAndGet(sum);
    }

    private static long inLedger(long began) {
        synchronized (ledger) {
            long waited = System.nanoTime() - began;
            sleep(8);
            return waited;
        }
    }

    private static long inCache(long began) {
        synchronized (cache) {
            long waited = System.nanoTime() - began;
            sleep(4);
            return waited;
        }
    }

    private static long inGauge(long began) {
        gauge.lock();
        try {
            long waited = System.nanoTime() - began;
            sleep(12);
            return waited;
        } finally {
            gauge.unlock();
        }
    }

    private static void sleep(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
