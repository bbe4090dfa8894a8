package truth;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Proves: a JVM in trouble can be looked at. Its argument is which; READY says that it is in it, or about to be.
 *
 *   deadlock     two threads hold a monitor each and wait for the other's
 *   safepoint    a thread runs a counted loop without a poll (-XX:-UseCountedLoopSafepoints), another asks for a safepoint
 *   memory       the heap is full to the last: threads allocate, and the collector runs all the time
 *   collecting   a large heap is collected in full, time and again (System.gc)
 *   exiting      a shutdown hook never ends
 *   threads N    N threads, parked
 */
public final class Trouble {
    private static final Object ONE = new Object(), TWO = new Object();
    private static final List<Object> KEPT = new ArrayList<>();
    static volatile int sink;

    private Trouble() {}

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "deadlock":
                deadlock();
                break;
            case "safepoint":
                safepoint();
                break;
            case "memory":
                memory();
                break;
            case "collecting":
                collecting();
                break;
            case "exiting":
                exiting();
                break;
            case "threads":
                threads(Integer.parseInt(args[1]));
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        Control.serve((command, out) -> {
            throw new IllegalArgumentException(command);
        }, () -> {});
    }

    private static void deadlock() throws Exception {
        CountDownLatch both = new CountDownLatch(2);
        start("first", () -> lock(ONE, TWO, both));
        start("second", () -> lock(TWO, ONE, both));
        both.await();
    }

    private static void lock(Object mine, Object theirs, CountDownLatch both) {
        synchronized (mine) {
            both.countDown();
            try {
                both.await();
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
            synchronized (theirs) {
                throw new IllegalStateException("no deadlock");
            }
        }
    }

    private static void safepoint() {
        for (int i = 0; i < 30; i++) {
            sink += counted(20_000); // compiled before it matters
        }
        ready();
        start("counting", () -> {
            while (true) {
                sink += counted(Integer.MAX_VALUE);
            }
        });
        start("asking", () -> {
            while (true) {
                System.gc();
            }
        });
    }

    /** Seconds for each call, and no poll in the inner loop. */
    private static int counted(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += (i ^ sum) % 7 / 3;
        }
        return sum;
    }

    private static void memory() {
        try {
            while (true) {
                KEPT.add(new byte[4096]);
            }
        } catch (OutOfMemoryError full) {
            KEPT.subList(KEPT.size() - 100, KEPT.size()).clear(); // room to say so
        }
        ready();
        for (int i = 0; i < 2; i++) {
            start("starving-" + i, Trouble::starve);
        }
    }

    private static void starve() {
        while (true) {
            try {
                sink += new byte[3000].length + new byte[3000].length;
            } catch (OutOfMemoryError expected) {
                sink++;
            }
        }
    }

    private static void collecting() {
        for (int i = 0; i < 2_000_000; i++) {
            KEPT.add(new int[] {i});
        }
        ready();
        start("collector", () -> {
            while (true) {
                System.gc();
            }
        });
    }

    /** Says READY before the trouble begins: afterwards the main thread may not run for minutes. */
    private static void ready() {
        System.out.println("READY");
        System.out.flush();
    }

    private static void exiting() throws Exception {
        CountDownLatch hooked = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            hooked.countDown();
            hang();
        }, "hook"));
        start("leaving", () -> System.exit(7));
        start("busy", Trouble::starve);
        hooked.await();
    }

    private static void hang() {
        Object never = new Object();
        synchronized (never) {
            try {
                never.wait();
            } catch (InterruptedException gone) {
                throw new IllegalStateException(gone);
            }
        }
    }

    private static void threads(int n) throws Exception {
        CountDownLatch all = new CountDownLatch(n);
        for (int i = 0; i < n; i++) {
            start("one-of-many-" + i, () -> {
                all.countDown();
                hang();
            });
        }
        all.await();
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(null, work, name, 256 << 10);
        thread.setDaemon(true);
        thread.start();
    }
}
