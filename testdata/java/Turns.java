package truth;

import java.util.concurrent.locks.LockSupport;

/**
 * Three threads that price carts. From the command "audit" on, each cart is audited, too: one at a time, in some 20 ms,
 * while the other threads wait. From "slow" on, a price takes three times as long. "usual" takes both back. The answer
 * is when it began, in milliseconds since 1970.
 *
 * <p>With an argument there is one thread, which computes in one method and never leaves it. From "audit" on it does so
 * in another one.
 */
public final class Turns {
    private static final Object ledger = new Object();
    private static volatile boolean audited;
    private static volatile int rounds = 1;
    private static volatile long sink;

    private Turns() {}

    public static void main(String[] args) {
        for (int i = 0; i < (args.length > 0 ? 1 : 3); i++) {
            Thread t = new Thread(args.length > 0 ? Turns::compute : Turns::serve, "cart-" + i);
            t.setDaemon(true);
            t.start();
        }
        Control.serve((command, out) -> {
            long now = System.currentTimeMillis();
            switch (command) {
                case "audit": audited = true; break;
                case "slow": rounds = 3; break;
                case "usual": audited = false; rounds = 1; break;
                default: throw new IllegalArgumentException(command);
            }
            out.println(now);
        }, () -> {});
    }

    private static void serve() {
        while (true) {
            sink += total() + price(rounds);
            if (audited) {
                audit();
            }
            LockSupport.parkNanos(2_000_000);
        }
    }

    private static void compute() {
        while (true) {
            first();
            second();
        }
    }

    private static void first() {
        for (long x = 1; !audited; x = x * 31 + 7) {
            sink = x;
        }
    }

    private static void second() {
        for (long x = 1; audited; x = x * 31 + 7) {
            sink = x;
        }
    }

    private static long total() {
        return work(400_000);
    }

    private static long price(int times) {
        return work(400_000 * times);
    }

    private static long work(int n) {
        long x = n;
        for (int i = 0; i < n; i++) {
            x = x * 31 + i;
        }
        return x;
    }

    private static void audit() {
        synchronized (ledger) {
            LockSupport.parkNanos(20_000_000);
        }
    }
}
