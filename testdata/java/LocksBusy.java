package truth;

import java.io.RandomAccessFile;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.util.Random;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;

/**
 * Proves: of a program that locks and unlocks all the time no deadlock is told, and no wrong owner. Arguments: a file,
 * how many threads. Thread N is called busy-N. Lock K is a monitor of class MK, or for K from 8 on a synchronizer of
 * class QK. Threads take up to three locks, always the lower number first, so there is no deadlock; and thread N takes
 * only locks whose number leaves the same remainder divided by 4. In the file thread N counts, for each lock K, how
 * often it was about to take it, and how often it has given it back: longs 32*N + 2*K and the next.
 */
public final class LocksBusy {
    private LocksBusy() {}

    static class M0 {}
    static class M1 {}
    static class M2 {}
    static class M3 {}
    static class M4 {}
    static class M5 {}
    static class M6 {}
    static class M7 {}

    static class Mutex extends AbstractQueuedSynchronizer {
        @Override
        protected boolean tryAcquire(int one) {
            if (compareAndSetState(0, 1)) {
                setExclusiveOwnerThread(Thread.currentThread());
                return true;
            }
            return false;
        }

        @Override
        protected boolean tryRelease(int one) {
            setExclusiveOwnerThread(null);
            setState(0);
            return true;
        }
    }

    static class Q8 extends Mutex {}
    static class Q9 extends Mutex {}
    static class Q10 extends Mutex {}
    static class Q11 extends Mutex {}
    static class Q12 extends Mutex {}
    static class Q13 extends Mutex {}
    static class Q14 extends Mutex {}
    static class Q15 extends Mutex {}

    private static final Object[] LOCKS = {
        new M0(), new M1(), new M2(), new M3(), new M4(), new M5(), new M6(), new M7(),
        new Q8(), new Q9(), new Q10(), new Q11(), new Q12(), new Q13(), new Q14(), new Q15()
    };

    private static LongBuffer counts;
    static volatile long spun;

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[1]);
        try (RandomAccessFile file = new RandomAccessFile(args[0], "rw")) {
            counts = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8L * 32 * threads)
                    .order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
        }
        for (int i = 0; i < threads; i++) {
            int own = i;
            Thread thread = new Thread(() -> work(own, new Random(own)), "busy-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        Control.serve((command, out) -> System.gc(), () -> Control.check(spun > 0, "nothing was done"));
    }

    private static void work(int own, Random random) {
        while (true) {
            take(own, own % 4, random);
        }
    }

    /** Takes the lock, or one of the next, then those above it, and holds them for a while. */
    private static void take(int own, int from, Random random) {
        int lock = from + 4 * random.nextInt(3);
        if (lock >= LOCKS.length) {
            hold(random);
            return;
        }
        int at = 32 * own + 2 * lock;
        counts.put(at, counts.get(at) + 1);
        if (lock < 8) {
            synchronized (LOCKS[lock]) {
                take(own, lock + 4, random);
            }
        } else {
            Mutex mutex = (Mutex) LOCKS[lock];
            mutex.acquire(1);
            try {
                take(own, lock + 4, random);
            } finally {
                mutex.release(1);
            }
        }
        counts.put(at + 1, counts.get(at + 1) + 1);
    }

    private static void hold(Random random) {
        int what = random.nextInt(20);
        if (what == 0) {
            try {
                Thread.sleep(random.nextInt(10));
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
        }
        for (int i = random.nextInt(1 << (what / 2)); i > 0; i--) {
            spun += i;
        }
    }
}
