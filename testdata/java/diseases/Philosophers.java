package truth;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Sick: two threads take two monitors in two orders, two others two locks of java.util.concurrent.
 * Well: all take them in one order.
 */
public final class Philosophers {
    interface Fork {
        void hold(Ward.Work work) throws Exception;
    }

    private static Fork monitor() {
        Object o = new Object();
        return work -> {
            synchronized (o) {
                work.run();
            }
        };
    }

    private static Fork lock() {
        ReentrantLock lock = new ReentrantLock();
        return work -> {
            lock.lock();
            try {
                work.run();
            } finally {
                lock.unlock();
            }
        };
    }

    public static void main(String[] args) throws Exception {
        boolean sick = Ward.sick(args);
        dine("monitors", monitor(), monitor(), sick);
        dine("locks", lock(), lock(), sick);
        Thread.sleep(500);
        Ward.serve();
    }

    private static void dine(String what, Fork a, Fork b, boolean sick) {
        CountDownLatch both = new CountDownLatch(2);
        Ward.Work meet = () -> {
            both.countDown();
            if (sick) both.await();
        };
        Ward.forever(what + "-1", () -> a.hold(() -> {
            meet.run();
            b.hold(() -> Thread.sleep(1));
        }));
        Ward.forever(what + "-2", () -> (sick ? b : a).hold(() -> {
            meet.run();
            (sick ? a : b).hold(() -> Thread.sleep(1));
        }));
    }
}
