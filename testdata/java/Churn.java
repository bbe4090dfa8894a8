package truth;

import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Proves: no name of a class that is gone is ever given to another, and a profiler does no harm, while
 * everything that it looks at comes and goes.
 *
 *  - Four threads load classes churn.Gn, n counted up, run them until they are compiled, and drop them.
 *    churn.Gn.runn calls churn.Gn.leafn: all three numbers agree, and leafn has no other caller. A stack
 *    in which they do not holds a wrong name, whenever it was taken.
 *  - A fifth one loads a class with lambdas and streams again and again, so that hidden classes are spun.
 *  - Where there is an agent (see Redefine), a class is redefined every 10 ms while it runs.
 *  - 500 threads a second start, work and end; every 50 ms the heap is collected, and classes unloaded.
 *
 * Each result is verified. To be started with -XX:ReservedCodeCacheSize=6m, so that code is flushed, too.
 * The command "counts" prints: generations, templates, threads, collections, redefinitions. The command "spans"
 * prints for each generation that has ended its number, and when by System.nanoTime it began and ended.
 */
public final class Churn {
    private static final int CALLS = 400;
    private static final int STEPS = 2_000;
    private static final long SINCE = System.nanoTime();

    private static final AtomicInteger generation = new AtomicInteger();
    private static final AtomicInteger templates = new AtomicInteger();
    private static final AtomicInteger started = new AtomicInteger();
    private static final AtomicInteger collections = new AtomicInteger();
    private static final AtomicInteger redefined = new AtomicInteger();
    private static final AtomicLong results = new AtomicLong();
    private static final Queue<long[]> spans = new ConcurrentLinkedQueue<>();
    private static volatile boolean stop;
    private static volatile Throwable wrong;

    private Churn() {}

    /** What a thread does over and over. */
    interface Round {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            threads.add(start("generations-" + i, Churn::runGeneration));
        }
        byte[] template = bytesOf("Churn$Template.class");
        threads.add(start("templates", () -> runTemplate(template)));
        threads.add(start("threads", Churn::startThreads));
        threads.add(start("collections", Churn::collect));
        if (Redefine.possible()) {
            threads.add(start("redefined", Redefine::run));
            threads.add(start("redefining", Churn::redefine));
        }
        while (generation.get() < 20 || templates.get() < 2 || started.get() < 20 || collections.get() == 0) {
            Control.check(wrong == null, String.valueOf(wrong));
            Thread.sleep(5);
        }
        Control.serve((command, out) -> {
            if (command.equals("spans")) {
                for (long[] span = spans.poll(); span != null; span = spans.poll()) {
                    out.println(span[0] + " " + span[1] + " " + span[2]);
                }
                return;
            }
            Control.check(command.equals("counts"), "no such command: " + command);
            out.println(generation + " " + templates + " " + started + " " + collections + " " + redefined);
        }, () -> {
            stop = true;
            for (Thread thread : threads) {
                thread.join(60_000);
                Control.check(!thread.isAlive(), thread + " hangs");
            }
            Control.check(wrong == null, String.valueOf(wrong));
            Control.check(results.get() == (long) started.get() * expected(7), "the short threads got wrong results");
        });
    }

    private static Thread start(String name, Round round) {
        Thread thread = new Thread(() -> {
            try {
                while (!stop) {
                    round.run();
                }
            } catch (Throwable thrown) {
                thrown.printStackTrace();
                wrong = thrown;
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Loads classes from bytes; it and they are garbage after use. */
    static final class Loader extends ClassLoader {
        Loader() {
            super(Churn.class.getClassLoader());
        }

        IntUnaryOperator make(String name, byte[] bytes) throws Exception {
            Class<?> made = defineClass(name, bytes, 0, bytes.length);
            return (IntUnaryOperator) made.getDeclaredConstructor().newInstance();
        }
    }

    private static void runGeneration() throws Exception {
        long began = System.nanoTime();
        int number = generation.incrementAndGet();
        IntUnaryOperator made = new Loader().make("churn.G" + number, generate(number));
        for (int i = 0; i < CALLS; i++) {
            int result = made.applyAsInt(i);
            Control.check(result == expected(i) + 1, "generation " + number + ": " + result + " for " + i);
        }
        spans.add(new long[] {number, began, System.nanoTime()});
    }

    private static byte[] generate(int number) {
        String name = "churn/G" + number;
        String run = "run" + number;
        String leaf = "leaf" + number;
        ClassFile file = new ClassFile(name, "java/util/function/IntUnaryOperator", 1);
        int callRun = file.call(name, run, "(I)I");
        int callLeaf = file.call(name, leaf, "(I)I");
        // iload_1, invokestatic run, ireturn
        file.method(ClassFile.PUBLIC, "applyAsInt", "(I)I", 2, 2, 0x1b, 0xb8, callRun >> 8, callRun, 0xac);
        // iload_0, invokestatic leaf, iconst_1, iadd, ireturn
        file.method(ClassFile.STATIC, run, "(I)I", 1, 3, 0x1a, 0xb8, callLeaf >> 8, callLeaf, 0x04, 0x60, 0xac);
        file.method(ClassFile.STATIC, leaf, "(I)I", 2, 4, loop(STEPS));
        return file.bytes();
    }

    /** What expected does, in the same order. */
    static int[] loop(int steps) {
        return new int[] {
            0x03, 0x3c, // i = 0
            0x1b, 0x11, steps >> 8, steps, 0xa2, 0, 16, // 2: if i >= steps goto 22
            0x1a, 0x10, 31, 0x68, 0x1b, 0x60, 0x3b, // n = n * 31 + i
            0x84, 1, 1, 0xa7, 0xff, 0xef, // i++, goto 2
            0x1a, 0xac}; // 22: return n
    }

    private static int expected(int n) {
        for (int i = 0; i < STEPS; i++) {
            n = n * 31 + i;
        }
        return n;
    }

    private static void runTemplate(byte[] bytes) throws Exception {
        IntUnaryOperator made = new Loader().make("truth.Churn$Template", bytes);
        for (int i = 0; i < 50; i++) {
            int result = made.applyAsInt(i);
            Control.check(result == 45 * i + 10, "template: " + result + " for " + i);
        }
        templates.incrementAndGet();
        Thread.sleep(2);
    }

    /** Loaded anew each time, with all its lambdas. */
    public static final class Template implements IntUnaryOperator {
        @Override
        public int applyAsInt(int n) {
            IntUnaryOperator times = i -> i * n;
            return IntStream.range(0, 10).map(times).map(i -> i + 1).sum();
        }
    }

    /** As many as are due by now, at 500 a second. */
    private static void startThreads() throws InterruptedException {
        long due = (System.nanoTime() - SINCE) / 2_000_000 - started.get();
        Thread[] threads = new Thread[(int) Math.min(due, 50)];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> results.addAndGet(expected(7)), "short-" + started.getAndIncrement());
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Thread.sleep(5);
    }

    private static void redefine() throws Exception {
        Redefine.next();
        redefined.incrementAndGet();
        Thread.sleep(10);
    }

    private static void collect() throws InterruptedException {
        System.gc();
        collections.incrementAndGet();
        Thread.sleep(50);
    }

    private static byte[] bytesOf(String resource) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (InputStream in = Churn.class.getResourceAsStream(resource)) {
            byte[] buffer = new byte[4_096];
            for (int n = in.read(buffer); n > 0; n = in.read(buffer)) {
                bytes.write(buffer, 0, n);
            }
        }
        return bytes.toByteArray();
    }
}
