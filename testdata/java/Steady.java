package truth;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/**
 * Proves: a comparison of two recordings finds a method that was made slower, and nothing else.
 *
 * The shares of its methods do not depend on the machine. All methods do the same: each is one chain of shifts in
 * registers, and differs from others only in its length. So whatever slows one of them slows all of them alike: a
 * neighbour on the same core, a lower clock, a full cache. Nothing is allocated after the start.
 *
 * A thread named "steady" serves requests of random sizes. Each is parsed, priced, stored and rendered, by methods of
 * these names. parse has a callee, price has none, store calls forty small methods, render calls itself. The CPU time of
 * each part is read in one of 16 requests: the sums are the truth. More often would cost, and what it costs does depend
 * on the machine.
 *
 * Commands:
 *   slower N   price takes N percent more of the CPU time of a whole request from now on
 *   plain      price is as it was before that, until "again"
 *   again      price is as slow as the last "slower" made it
 *   mark       start counting anew
 *   truth      one line of JSON: {"parse":0.22,"price":0.3,"store":0.24,"render":0.24,"other":0.0}
 *
 * Needs no JVM flags.
 */
public final class Steady {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final String[] PARTS = {"parse", "price", "store", "render"};
    private static final int PRICE = 1;

    /** How many rounds of its chain each part has in a request of mean size: some 100 us in all. */
    private static final int[] ROUNDS = {11_000, 15_000, 12_000, 12_000};
    private static final int DEPTH = 24;
    private static final int TIMED = 16;
    private static final long WARM_NANOS = 4_000_000_000L;

    private volatile boolean stop;
    private volatile boolean warm;
    private volatile Throwable wrong;
    /** How many more rounds price has, and how many "slower" found. */
    private volatile int slower;
    private int found;
    private long chain = 88172645463325252L;
    private long sizes = 1234567891L;
    private int requests;

    // The sums since the last mark; read by another thread, hence synchronized.
    private final long[] nanos = new long[PARTS.length];
    private long all;

    public static void main(String[] args) throws Exception {
        Steady steady = new Steady();
        Thread thread = new Thread(steady::work, "steady");
        thread.setDaemon(true);
        thread.start();
        steady.awaitCompiled();
        Control.serve((command, out) -> {
            if (command.startsWith("slower ")) {
                steady.slow(Double.parseDouble(command.substring(7)));
            } else if (command.equals("plain")) {
                steady.slower = 0;
            } else if (command.equals("again")) {
                steady.slower = steady.found;
            } else if (command.equals("mark")) {
                steady.mark();
            } else if (command.equals("truth")) {
                out.println(steady.truth());
            } else {
                throw new IllegalArgumentException("no such command: " + command);
            }
        }, () -> {
            steady.stop = true;
            thread.join(20_000);
            Control.check(!thread.isAlive(), thread + " hangs");
            Control.check(steady.wrong == null, String.valueOf(steady.wrong));
        });
    }

    /** Waits until the compiler has had nothing to do for two seconds. */
    private void awaitCompiled() throws InterruptedException {
        CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        long before = -1;
        for (long now = 0; !warm || now != before; now = compiler.getTotalCompilationTime()) {
            Control.check(wrong == null, String.valueOf(wrong));
            before = now;
            Thread.sleep(2000);
        }
    }

    private void work() {
        try {
            slower = ROUNDS[PRICE] / 6; // the compiler is to have seen that, too
            long end = THREADS.getCurrentThreadCpuTime() + WARM_NANOS;
            while (THREADS.getCurrentThreadCpuTime() < end) {
                request();
            }
            slower = 0;
            warm = true;
            while (!stop) {
                request();
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }

    /** A request is between half and one and a half times as large as the mean one, in all of its parts alike. */
    private void request() {
        sizes = spin(sizes, 1);
        int size = 512 + (int) (sizes & 1023);
        boolean timed = requests++ % TIMED == 0;
        long begin = timed ? THREADS.getCurrentThreadCpuTime() : 0;
        long at = begin;
        for (int part = 0; part < PARTS.length; part++) {
            int rounds = (ROUNDS[part] + (part == PRICE ? slower : 0)) * size >> 10;
            switch (part) {
                case 0: chain = parse(chain, rounds); break;
                case PRICE: chain = price(chain, rounds); break;
                case 2: chain = store(chain, rounds); break;
                default: chain = render(chain, rounds / DEPTH, DEPTH); break;
            }
            if (timed) {
                long now = THREADS.getCurrentThreadCpuTime();
                count(part, now - at);
                at = THREADS.getCurrentThreadCpuTime();
            }
        }
        if (timed) {
            countAll(at - begin);
        }
    }

    private synchronized void count(int part, long took) {
        nanos[part] += took;
    }

    private synchronized void countAll(long took) {
        all += took;
    }

    private synchronized void mark() {
        Arrays.fill(nanos, 0);
        all = 0;
    }

    /** A part's share of all CPU time since the last mark. */
    private synchronized double share(int part) {
        return nanos[part] / (double) Math.max(all, 1);
    }

    /** Makes price slower by so many percent of a request as it has been since the last mark. */
    private void slow(double percent) {
        double share = share(PRICE);
        Control.check(share > 0.1, "price has a share of " + share);
        found = (int) (percent / 100 * ROUNDS[PRICE] / share);
        slower = found;
    }

    private synchronized String truth() {
        StringBuilder json = new StringBuilder("{");
        double rest = 1;
        for (int part = 0; part < PARTS.length; part++) {
            rest -= share(part);
            json.append('"').append(PARTS[part]).append("\":").append(share(part)).append(',');
        }
        return json.append("\"other\":").append(rest).append('}').toString();
    }

    // The parts. Each method with work has its own loop, so that each has samples of its own.

    private static long spin(long x, int n) {
        while (n-- > 0) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    private static long parse(long x, int n) {
        return token(x, n);
    }

    private static long token(long x, int n) {
        while (n-- > 0) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    private static long price(long x, int n) {
        while (n-- > 0) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    private static long render(long x, int n, int depth) {
        for (int i = n; i > 0; i--) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return depth > 1 ? render(x, n, depth - 1) : x;
    }

    /** The small methods: the largest has three times as much to do as the smallest. */
    private static long store(long x, int n) {
        for (int i = 0; i < 40; i++) {
            x = step(i, x, n * (20 + i) / 1580);
        }
        return x;
    }

    private static long step(int which, long x, int n) {
        switch (which) {
            case 0: return step00(x, n);
            case 1: return step01(x, n);
            case 2: return step02(x, n);
            case 3: return step03(x, n);
            case 4: return step04(x, n);
            case 5: return step05(x, n);
            case 6: return step06(x, n);
            case 7: return step07(x, n);
            case 8: return step08(x, n);
            case 9: return step09(x, n);
            case 10: return step10(x, n);
            case 11: return step11(x, n);
            case 12: return step12(x, n);
            case 13: return step13(x, n);
            case 14: return step14(x, n);
            case 15: return step15(x, n);
            case 16: return step16(x, n);
            case 17: return step17(x, n);
            case 18: return step18(x, n);
            case 19: return step19(x, n);
            case 20: return step20(x, n);
            case 21: return step21(x, n);
            case 22: return step22(x, n);
            case 23: return step23(x, n);
            case 24: return step24(x, n);
            case 25: return step25(x, n);
            case 26: return step26(x, n);
            case 27: return step27(x, n);
            case 28: return step28(x, n);
            case 29: return step29(x, n);
            case 30: return step30(x, n);
            case 31: return step31(x, n);
            case 32: return step32(x, n);
            case 33: return step33(x, n);
            case 34: return step34(x, n);
            case 35: return step35(x, n);
            case 36: return step36(x, n);
            case 37: return step37(x, n);
            case 38: return step38(x, n);
            default: return step39(x, n);
        }
    }

    static long step00(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step01(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step02(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step03(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step04(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step05(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step06(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step07(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step08(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step09(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step10(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step11(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step12(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step13(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step14(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step15(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step16(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step17(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step18(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step19(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step20(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step21(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step22(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step23(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step24(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step25(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step26(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step27(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step28(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step29(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step30(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step31(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step32(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step33(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step34(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step35(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step36(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step37(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step38(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
    static long step39(long x, int n) { while (n-- > 0) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; } return x; }
}
