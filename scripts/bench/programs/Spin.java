import java.util.Scanner;
import java.util.concurrent.locks.LockSupport;

/**
 * spin.c in Java: one thread, named "spin", does nothing but read its clock, and so sees each moment at which it
 * did not run. Some 16 KB of its stack are in use, by 30 frames.
 *
 * Prints "ready", then obeys its standard input:
 *   w MILLISECONDS  prints the gaps of the next so many milliseconds, in ns: "N g1 g2 ... gN"
 *   r 0, r 1        the thread rests, and runs again; it runs at first
 */
public final class Spin {
    private static final int MOST = 1 << 18;
    private static final long SHORTEST = 1000;
    private static final int DEPTH = 27;

    private static final long[] gaps = new long[MOST];
    private static volatile long until; // the window that is measured ends then
    private static volatile int count;
    private static volatile boolean done;
    private static volatile boolean resting;

    /** Each frame holds 16 longs, for the interpreter keeps what nobody reads any more. */
    private static long dive(int n) {
        long a0 = n + 0, a1 = n + 1, a2 = n + 2, a3 = n + 3, a4 = n + 4, a5 = n + 5, a6 = n + 6, a7 = n + 7;
        long a8 = n + 8, a9 = n + 9, a10 = n + 10, a11 = n + 11, a12 = n + 12, a13 = n + 13, a14 = n + 14, a15 = n + 15;
        if (n == 0) {
            while (true) {
                spin();
                rest();
            }
        }
        return dive(n - 1) + a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15;
    }

    private static void rest() {
        while (resting) {
            LockSupport.parkNanos(1_000_000);
        }
    }

    /** Measures windows, and comes back now and then, to be compiled whole. */
    private static void spin() {
        long before = System.nanoTime();
        long end = 0;
        int seen = 0;
        for (int i = 0; i < 1_000_000_000; i++) {
            long at = System.nanoTime();
            if (end != 0) {
                if (at - before > SHORTEST && seen < MOST) {
                    gaps[seen++] = at - before;
                }
                if (at - end >= 0) {
                    count = seen;
                    done = true;
                    return;
                }
            } else if (until != 0) {
                end = until;
                until = 0;
            } else if (resting) {
                return;
            }
            before = at;
        }
    }

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(null, () -> dive(DEPTH), "spin", 1 << 20);
        thread.setDaemon(true);
        thread.start();
        Scanner in = new Scanner(System.in);
        for (int i = 0; i < 20; i++) {
            window(50); // so that it is compiled
        }
        System.out.println("ready");
        while (in.hasNext()) {
            String what = in.next();
            long number = in.nextLong();
            if (what.equals("r")) {
                resting = number == 0;
                continue;
            }
            window(number);
            StringBuilder line = new StringBuilder().append(count);
            for (int i = 0; i < count; i++) {
                line.append(' ').append(gaps[i]);
            }
            System.out.println(line);
        }
    }

    private static void window(long ms) throws InterruptedException {
        done = false;
        until = System.nanoTime() + ms * 1_000_000;
        Thread.sleep(ms);
        while (!done) {
            Thread.sleep(1);
        }
    }
}
