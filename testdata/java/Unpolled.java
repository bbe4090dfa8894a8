package truth;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.locks.LockSupport;

/**
 * A thread that computes for a known time without a safepoint poll, while another asks for a safepoint. It is meant to
 * run with -XX:-UseCountedLoopSafepoints -XX:LoopStripMiningIter=0, as code of C2.
 *
 * "compile" makes that code and begins the thread. "asks N MILLIS" does that N times, and answers with a line for each: when the safepoint was asked for and when the loop
 * ended, by System.nanoTime().
 */
public final class Unpolled {
    static volatile long result;
    static volatile int wanted; // the number of the loop that is to run
    static volatile int running;
    static volatile long ended;
    static volatile long length; // of a loop, in ns

    private Unpolled() {}

    public static void main(String[] args) {
        Control.serve(Unpolled::run, () -> {});
    }

    private static void run(String line, PrintStream out) throws Exception {
        String[] word = line.split(" ");
        if (word[0].equals("compile")) {
            compile();
            Thread stubborn = new Thread(Unpolled::stubborn, "stubborn");
            stubborn.setDaemon(true);
            stubborn.start();
            return;
        }
        if (!word[0].equals("asks")) {
            throw new IllegalArgumentException(line);
        }
        int n = Integer.parseInt(word[1]);
        length = Long.parseLong(word[2]) * 1000000;
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (int i = 0; i < n; i++) {
            Thread.sleep(2);
            int now = ++wanted;
            while (running != now) {
                Thread.yield();
            }
            long asked = System.nanoTime();
            threads.dumpAllThreads(false, false); // at a safepoint, in all releases
            out.println(asked + " " + ended);
        }
    }

    /** Runs a loop whenever one is wanted. */
    private static void stubborn() {
        for (int done = 0; ; ) {
            while (wanted == done) {
                LockSupport.parkNanos(200000);
            }
            done = wanted;
            running = done;
            result += unpolled(length);
        }
    }

    /** Counted loops, of which C2 makes code without polls; nanoTime is a leaf call, which has none either. */
    static long unpolled(long nanos) {
        long began = System.nanoTime();
        long x = nanos;
        for (int i = 0; i < Integer.MAX_VALUE; i++) {
            for (int k = 0; k < 200; k++) {
                x = x * 6364136223846793005L + 1442695040888963407L;
            }
            if (System.nanoTime() - began >= nanos) {
                break;
            }
        }
        ended = System.nanoTime(); // the method's return is a poll
        return x;
    }

    /** Runs the loop until C2 has compiled it. */
    private static void compile() {
        for (int i = 0; i < 20000; i++) {
            result += unpolled(1000);
        }
        for (int i = 0; i < 500; i++) {
            result += unpolled(1000000);
        }
    }
}
