package truth;

import java.io.IOException;
import java.io.RandomAccessFile;

/**
 * Threads that publish for which span they work (testdata/native/tracing.c), each by a library that finds thread-local
 * variables in another way. Each thread goes from span to span all the time, and is in the method that is called like
 * the span for as long as that is published.
 *
 * <p>Arguments: the libraries of Gnu, Descriptor, Initial and Late. The last one is loaded by the command "late".
 * Without it there are virtual threads only.
 */
public final class Tracing {
    /** What a library does. */
    interface Agent {
        void swap(int thread, int span);

        void write(int thread, int span);

        void detach();

        void begin();

        void half();

        void stray();
    }

    static final class Gnu implements Agent {
        public native void swap(int thread, int span);

        public native void write(int thread, int span);

        public native void detach();

        public native void begin();

        public native void half();

        public native void stray();
    }

    static final class Descriptor implements Agent {
        public native void swap(int thread, int span);

        public native void write(int thread, int span);

        public native void detach();

        public native void begin();

        public native void half();

        public native void stray();
    }

    static final class Initial implements Agent {
        public native void swap(int thread, int span);

        public native void write(int thread, int span);

        public native void detach();

        public native void begin();

        public native void half();

        public native void stray();
    }

    static final class Late implements Agent {
        public native void swap(int thread, int span);

        public native void write(int thread, int span);

        public native void detach();

        public native void begin();

        public native void half();

        public native void stray();
    }

    private static volatile boolean over;
    private static volatile long sink;

    /** Some microseconds to some hundred. */
    private static int some(int[] seed) {
        seed[0] = seed[0] * 1103515245 + 12345;
        int n = seed[0] >>> 8;
        return (n & 7) == 0 ? n & 0xffff : n & 0xfff;
    }

    private static long work(int n) {
        long sum = n;
        for (int i = 0; i < n; i++) {
            sum = sum * 31 + (sum >>> 7);
        }
        return sum;
    }

    static void alpha(int n) {
        sink = work(n);
    }

    static void beta(int n) {
        sink = work(n);
    }

    static void detached(int n) {
        sink = work(n);
    }

    static void begun(int n) {
        sink = work(n);
    }

    static void torn(int n) {
        sink = work(n);
    }

    static void astray(int n) {
        sink = work(n);
    }

    /** Waits within a span. */
    static void waiting() throws InterruptedException {
        Thread.sleep(30);
    }

    /** Waits without one. */
    static void idle() throws InterruptedException {
        Thread.sleep(20);
    }

    /** Does all that there are samples of, within a span. */
    static void inside(RandomAccessFile file) throws InterruptedException, IOException {
        everything(file);
    }

    /** The same without one. */
    static void outside(RandomAccessFile file) throws InterruptedException, IOException {
        everything(file);
    }

    private static final Object LOCK = new Object();
    private static volatile byte[] kept;

    /** Allocates, throws, reads, and waits for a lock that another thread has meanwhile. A virtual thread waits not. */
    private static void everything(RandomAccessFile file) throws InterruptedException, IOException {
        for (int i = 0; i < 16; i++) {
            kept = new byte[4096 + (i & 1)];
        }
        try {
            throw new IllegalStateException();
        } catch (IllegalStateException e) {
            file.seek(0);
            file.read(new byte[16 << 10]); // so much is read by way of malloc
        }
        if (!Thread.currentThread().getClass().getName().contains("Virtual")) {
            synchronized (LOCK) {
                Thread.sleep(2);
            }
        }
    }

    private static void act(Agent agent, int thread) {
        try (RandomAccessFile file = new RandomAccessFile("/proc/self/stat", "r")) {
            while (!over) {
                agent.swap(thread, 4);
                inside(file);
                agent.detach();
                outside(file);
            }
        } catch (InterruptedException | IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void rest(Agent agent, int thread) {
        try {
            while (!over) {
                agent.swap(thread, 3);
                waiting();
                agent.detach();
                idle();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Some agents have a record for each span, others write all spans of a thread into one record. */
    private static void span(Agent agent, boolean swaps, int thread, int span) {
        if (swaps) {
            agent.swap(thread, span);
        } else {
            agent.write(thread, span);
        }
    }

    private static void publish(Agent agent, boolean swaps, int thread) {
        int[] seed = {thread};
        while (!over) {
            span(agent, swaps, thread, 1);
            alpha(some(seed));
            span(agent, swaps, thread, 2);
            beta(some(seed));
            agent.detach();
            detached(some(seed));
            span(agent, swaps, thread, 1);
            alpha(some(seed));
            agent.begin();
            begun(some(seed));
            agent.half();
            torn(some(seed));
            agent.stray();
            astray(some(seed));
        }
        agent.detach();
    }

    /**
     * The same in a virtual thread. The record is of the carrier, so it is published once the thread has one, and taken
     * back before another thread may get the carrier. Callers lie in the heap after a yield.
     */
    private static void publishVirtual(Agent agent, int thread, int levels) {
        if (levels > 0) {
            publishVirtual(agent, thread, levels - 1);
            return;
        }
        int[] seed = {thread};
        try (RandomAccessFile file = new RandomAccessFile("/proc/self/stat", "r")) {
            while (!over) {
                agent.swap(thread, 1);
                alpha(16 * some(seed));
                agent.detach();
                if (thread != 3) { // that one never leaves its carrier
                    Thread.yield();
                }
                agent.swap(thread, 2);
                beta(16 * some(seed));
                agent.swap(thread, 4);
                inside(file);
                agent.detach();
                detached(16 * some(seed));
                outside(file);
            }
        } catch (InterruptedException | IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void virtual(int thread, Agent agent) {
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            builder = type.getMethod("name", String.class).invoke(builder, "tracing-" + thread);
            type.getMethod("start", Runnable.class).invoke(builder, (Runnable) () -> publishVirtual(agent, thread, 10));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void start(int thread, boolean swaps, Agent agent) {
        daemon("tracing-" + thread, () -> publish(agent, swaps, thread));
    }

    private static void daemon(String name, Runnable body) {
        Thread t = new Thread(body, name);
        t.setDaemon(true);
        t.start();
    }

    private static void platform() {
        start(1, true, new Gnu());
        start(2, false, new Gnu());
        start(3, true, new Descriptor());
        start(4, false, new Initial());
        daemon("tracing-6", () -> rest(new Gnu(), 6));
        daemon("tracing-7", () -> rest(new Initial(), 7));
        daemon("tracing-8", () -> act(new Gnu(), 8));
        daemon("tracing-9", () -> act(new Initial(), 9));
        daemon("tracing-none", () -> {
            int[] seed = {9};
            while (!over) {
                detached(some(seed));
            }
        });
    }

    public static void main(String[] args) {
        for (int i = 0; i < 3; i++) {
            System.load(args[i]);
        }
        if (args.length == 3) {
            virtual(1, new Gnu());
            virtual(2, new Descriptor());
            virtual(3, new Initial());
        } else {
            platform();
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("late"), "no such command: " + command);
            System.load(args[3]);
            start(5, true, new Late());
        }, () -> over = true);
    }
}
