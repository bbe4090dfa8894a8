package truth;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that wait for locks of three classes, and know for how long.
 *
 * "begin" starts the threads. "wait MILLIS" lets them do that for so long; the answer is a line for each class:
 * nanoseconds that were waited for its locks, by System.nanoTime() before and after, for how many of them the threads
 * had a CPU, and its name.
 */
public final class Waiting {
    static final class Ledger {}

    static final class Cache {}

    static final class Gauge extends ReentrantLock {}

    static final Ledger ledger = new Ledger();
    static final Cache cache = new Cache();
    static final Gauge gauge = new Gauge();
    static final String[] NAMES = {"Ledger", "Cache", "Gauge"};
    static final AtomicLong[] waited = {new AtomicLong(), new AtomicLong(), new AtomicLong()};
    static final AtomicLong[] charged = {new AtomicLong(), new AtomicLong(), new AtomicLong()};
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
        for (int i = 0; i < NAMES.length; i++) {
            waited[i].set(0);
            charged[i].set(0);
        }
        end = System.nanoTime() + Long.parseLong(word[1]) * 1000000;
        gate.await();
        gate.await();
        for (int i = 0; i < NAMES.length; i++) {
            out.println(waited[i].get() + " " + charged[i].get() + " " + NAMES[i]);
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

    /** A thread's clocks while it waits for locks: that of the world, and that of its time on a CPU. */
    static final class Clocks {
        static final ThreadMXBean BEAN = ManagementFactory.getThreadMXBean();
        long waited;
        long charged;

        void begin() {
            waited -= System.nanoTime();
            charged -= BEAN.getCurrentThreadCpuTime();
        }

        void end() {
            charged += BEAN.getCurrentThreadCpuTime();
            waited += System.nanoTime();
        }
    }

    private static void contend(int kind) {
        Clocks clocks = new Clocks();
        while (System.nanoTime() < end) {
            switch (kind) {
                case 0: inLedger(clocks); break;
                case 1: inCache(clocks); break;
                default: inGauge(clocks);
            }
            sleep(1);
        }
        waited[kind].addAndGet(clocks.waited);
        charged[kind].addAndGet(clocks.charged);
    }

    private static void inLedger(Clocks clocks) {
        clocks.begin();
        synchronized (ledger) {
            clocks.end();
            sleep(8);
        }
    }

    private static void inCache(Clocks clocks) {
        clocks.begin();
        synchronized (cache) {
            clocks.end();
            sleep(4);
        }
    }

    private static void inGauge(Clocks clocks) {
        clocks.begin();
        gauge.lock();
        try {
            clocks.end();
            sleep(12);
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
