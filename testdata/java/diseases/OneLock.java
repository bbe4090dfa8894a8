package truth;

import java.util.concurrent.locks.ReentrantLock;

/**
 * Sick: eight threads need one lock for nearly all that they do.
 * Well: each has a lock of its own.
 * Argument: "monitor" or "lock".
 */
public final class OneLock {
    static final class Ledger {
        private final ReentrantLock lock = new ReentrantLock();
        private long booked;

        synchronized void bookInMonitor() throws InterruptedException {
            booked++;
            Thread.sleep(5);
        }

        void bookInLock() throws InterruptedException {
            lock.lock();
            try {
                booked++;
                Thread.sleep(5);
            } finally {
                lock.unlock();
            }
        }
    }

    public static void main(String[] args) {
        boolean sick = Ward.sick(args), monitor = args[1].equals("monitor");
        Ledger one = new Ledger();
        for (int i = 0; i < 8; i++) {
            Ledger ledger = sick ? one : new Ledger();
            Ward.forever("booker-" + i, () -> {
                if (monitor) ledger.bookInMonitor();
                else ledger.bookInLock();
            });
        }
        Ward.serve();
    }
}
