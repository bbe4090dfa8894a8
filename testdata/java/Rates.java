package truth;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

/**
 * Proves: what goprof top tells of each thread: its share of a CPU, how much it allocates, its state and its topmost
 * method.
 *
 * Threads use CPU time and allocate at fixed rates; each compares what it was charged with the clock, and rests when it
 * is ahead: "cpu-10" and "cpu-30" are to use that many percent of a CPU, "alloc-2" and "alloc-20" are to allocate that
 * many MB a second. Further ones sleep; the first of those has a name that would clear a terminal.
 *
 * Argument: how many threads sleep (20), and how often a second each wakes up (0). Command: "truth" prints for each
 * working thread its name, and what it was charged and has allocated so far, with the time, all in ns and bytes:
 *
 *   THREAD cpu-10 AT 123456 CPU 12345 ALLOCATED 678
 */
public final class Rates {
    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final long TURN_MS = 5;
    private static final String EVIL = "evil\u001b[2J\u001b]0;owned\u0007\r\n\u202e;<b>\u540d\u524d";

    private static volatile Object sink;
    private static volatile double result;
    private static final List<Thread> WORKING = new ArrayList<>();

    private Rates() {}

    /** A piece of work. */
    interface Work {
        void turn();
    }

    public static void main(String[] args) throws Exception {
        int sleeping = args.length > 0 ? Integer.parseInt(args[0]) : 20;
        int wakes = args.length > 1 ? Integer.parseInt(args[1]) : 0;
        for (int percent : new int[] {10, 30}) {
            start("cpu-" + percent, () -> burn(percent));
        }
        for (int megabytes : new int[] {2, 20}) {
            start("alloc-" + megabytes, () -> allocate(megabytes << 20));
        }
        long rest = wakes > 0 ? 1000 / wakes : Integer.MAX_VALUE;
        for (int i = 0; i < sleeping; i++) {
            Thread thread = new Thread(() -> restForEver(rest), i == 0 ? EVIL : "sleeper-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        Control.serve((command, out) -> {
            if (!command.equals("truth")) {
                throw new IllegalArgumentException("no such command: " + command);
            }
            for (Thread t : WORKING) {
                out.printf("THREAD %s AT %d CPU %d ALLOCATED %d%n", t.getName(), System.nanoTime(),
                        THREADS.getThreadCpuTime(t.getId()), THREADS.getThreadAllocatedBytes(t.getId()));
            }
        }, () -> {
            for (Thread t : WORKING) {
                Control.check(t.isAlive(), t + " has ended");
            }
        });
    }

    private static void start(String name, Work work) {
        Thread thread = new Thread(work::turn, name);
        thread.setDaemon(true);
        WORKING.add(thread);
        thread.start();
    }

    private static void restForEver(long milliseconds) {
        try {
            while (true) {
                Thread.sleep(milliseconds);
            }
        } catch (InterruptedException nobody) {
            throw new AssertionError(nobody);
        }
    }

    /** Uses that many percent of a CPU. What was missed for more than a second is not made up for. */
    private static void burn(int percent) {
        long from = System.nanoTime();
        long before = THREADS.getCurrentThreadCpuTime();
        while (true) {
            long now = System.nanoTime();
            long due = (now - from) * percent / 100 - (THREADS.getCurrentThreadCpuTime() - before);
            if (due <= 0) {
                rest();
            } else if (due > 1_000_000_000L) {
                from = now;
                before = THREADS.getCurrentThreadCpuTime();
            } else {
                burnSome();
            }
        }
    }

    private static void burnSome() {
        double x = result;
        for (int i = 0; i < 20_000; i++) {
            x += Math.sqrt(x + i);
        }
        result = x % 1000;
    }

    /** Allocates that many bytes a second. */
    private static void allocate(long rate) {
        long from = System.nanoTime();
        long done = 0;
        while (true) {
            long now = System.nanoTime();
            long due = (now - from) / 1000 * rate / 1_000_000 - done;
            if (due <= 0) {
                rest();
            } else if (due > rate) {
                from = now;
                done = 0;
            } else {
                sink = new byte[4096];
                done += 4096 + 16;
            }
        }
    }

    private static void rest() {
        try {
            Thread.sleep(TURN_MS);
        } catch (InterruptedException nobody) {
            throw new AssertionError(nobody);
        }
    }
}
