package truth;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: what is measured of a few threads that run holds among many that sleep. Arguments: how many sleep, how
 * many run. Of those that run each fourth never rests, the others work for 1 to 3 of each 8 milliseconds.
 */
public final class Crowd {
    static volatile long sink;

    private Crowd() {}

    public static void main(String[] args) throws Exception {
        int sleeping = Integer.parseInt(args[0]), running = Integer.parseInt(args[1]);
        CountDownLatch all = new CountDownLatch(sleeping + running);
        for (int i = 0; i < sleeping; i++) {
            start("sleeping-" + i, () -> {
                all.countDown();
                while (true) {
                    LockSupport.park();
                }
            });
        }
        for (int i = 0; i < running; i++) {
            int share = i % 4;
            start("running-" + i, () -> {
                all.countDown();
                run(share);
            });
        }
        all.await();
        Control.serve((command, out) -> {
            throw new IllegalArgumentException(command);
        }, () -> {});
    }

    /** Works for so many of each 8 milliseconds, or for all of them if share is 0. */
    private static void run(int share) {
        while (true) {
            work(share == 0 ? 8_000_000 : share * 1_000_000);
            if (share > 0) {
                LockSupport.parkNanos((8 - share) * 1_000_000L);
            }
        }
    }

    private static void work(long nanos) {
        for (long end = System.nanoTime() + nanos; System.nanoTime() < end; ) {
            long sum = sink;
            for (int i = 0; i < 1000; i++) {
                sum += (i ^ sum) % 7;
            }
            sink = sum;
        }
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(null, work, name, 256 << 10);
        thread.setDaemon(true);
        thread.start();
    }
}
