package truth;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Proves: a thread that wants to write what it reads itself waits for itself, and others wait behind it. The thread
 * "upgrader" does that, the thread "behind" wants to read. Argument: "timed" for an upgrader that gives up in time,
 * "endless" for one that never does.
 */
public final class Upgrade {
    private Upgrade() {}

    private static final ReentrantReadWriteLock LOCK = new ReentrantReadWriteLock();

    public static void main(String[] args) throws Exception {
        boolean timed = args[0].equals("timed");
        Thread upgrader = start("upgrader", () -> upgrade(timed));
        settle(upgrader);
        settle(start("behind", () -> LOCK.readLock().lock()));
        Control.serve((command, out) -> {}, () -> Control.check(upgrader.isAlive(), "the upgrader has ended"));
    }

    private static void upgrade(boolean timed) {
        LOCK.readLock().lock();
        try {
            if (timed) {
                LOCK.writeLock().tryLock(1, TimeUnit.HOURS);
            } else {
                LOCK.writeLock().lock();
            }
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    private static Thread start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void settle(Thread thread) throws InterruptedException {
        while (!LOCK.hasQueuedThread(thread)) {
            Thread.sleep(1);
        }
    }
}
