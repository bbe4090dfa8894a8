package truth;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Proves: a thread has one name in a recording, though the kernel knows the first fifteen bytes of it only.
 *
 * Threads with long names are born all the time. Each computes for a while and ends. Most of the heap is young and moves often.
 */
public final class LongNames {
    private LongNames() {}

    private static volatile boolean stop;
    private static volatile Object garbage;
    private static final AtomicInteger BORN = new AtomicInteger();

    public static void main(String[] args) {
        Thread births = new Thread(LongNames::bear, "mother");
        births.start();
        Control.serve((command, out) -> out.println(BORN.get()), () -> {
            stop = true;
            births.join(60_000);
            Control.check(!births.isAlive(), "it hangs");
        });
    }

    private static void bear() {
        while (!stop) {
            Thread child = new Thread(LongNames::live, "a-thread-of-long-name-" + BORN.incrementAndGet());
            child.start();
            try {
                child.join();
            } catch (InterruptedException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
    }

    private static void live() {
        long end = System.nanoTime() + 60_000_000L;
        while (System.nanoTime() < end && !stop) {
            garbage = new byte[10_000];
        }
    }
}
