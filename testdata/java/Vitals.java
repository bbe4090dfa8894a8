package truth;

import java.io.PrintStream;
import java.lang.management.ClassLoadingMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryUsage;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * A program that knows how its JVM is: what the JVM's own beans say of heap, collections, allocation, classes, code
 * cache and finalizers is printed on demand, as lines of a name and a number.
 */
public final class Vitals {
    private static final List<Object> kept = new ArrayList<>();
    private static final CountDownLatch never = new CountDownLatch(1);
    static volatile int result;
    static volatile Object sink;

    private Vitals() {}

    public static void main(String[] args) {
        Control.serve(Vitals::run, () -> {});
    }

    private static void run(String line, PrintStream out) throws Exception {
        String[] word = line.split(" ");
        int n = word.length > 1 ? Integer.parseInt(word[1]) : 0;
        switch (word[0]) {
            case "beans": beans(out); break;
            case "gc": System.gc(); break;
            case "garbage": garbage(n); break;
            case "keep": keep(n); break;
            case "allocators": allocators(n); break;
            case "allocated": allocated(out); break;
            case "finalizers": finalizers(n); break;
            case "classes": classes(n); break;
            case "methods": methods(n); break;
            case "overflow": overflow(); break;
            case "memory": memory(); break;
            case "hold": hold(); break;
            case "pin": pin(n); break;
            default: throw new IllegalArgumentException(line);
        }
    }

    private static void beans(PrintStream out) {
        MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
        put(out, "heap.used", heap.getUsed());
        put(out, "heap.committed", heap.getCommitted());
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            MemoryUsage u = pool.getUsage();
            put(out, "used." + pool.getName(), u.getUsed());
            put(out, "committed." + pool.getName(), u.getCommitted());
            put(out, "max." + pool.getName(), u.getMax());
            if (pool.getCollectionUsage() != null) {
                put(out, "after." + pool.getName(), pool.getCollectionUsage().getUsed());
            }
        }
        for (GarbageCollectorMXBean gc : ManagementFactory.getGarbageCollectorMXBeans()) {
            put(out, "count." + gc.getName(), gc.getCollectionCount());
        }
        ClassLoadingMXBean classes = ManagementFactory.getClassLoadingMXBean();
        put(out, "classes.loaded", classes.getTotalLoadedClassCount());
        put(out, "classes.unloaded", classes.getUnloadedClassCount());
        put(out, "threads.live", ManagementFactory.getThreadMXBean().getThreadCount());
        put(out, "threads.daemon", ManagementFactory.getThreadMXBean().getDaemonThreadCount());
        put(out, "threads.peak", ManagementFactory.getThreadMXBean().getPeakThreadCount());
        put(out, "threads.started", ManagementFactory.getThreadMXBean().getTotalStartedThreadCount());
        put(out, "finalizers", ManagementFactory.getMemoryMXBean().getObjectPendingFinalizationCount());
    }

    private static void put(PrintStream out, String name, long value) {
        out.println(value + " " + name);
    }

    /** Makes that many MB of garbage. */
    private static void garbage(int megabytes) {
        for (int i = 0; i < megabytes * 16; i++) {
            sink = new byte[64 << 10];
        }
        sink = null;
    }

    /** Keeps that many MB. */
    private static void keep(int megabytes) {
        for (int i = 0; i < megabytes * 16; i++) {
            kept.add(new byte[64 << 10]);
        }
    }

    /** Starts threads that allocate different amounts and wait. */
    private static void allocators(int n) throws Exception {
        CountDownLatch done = new CountDownLatch(n);
        for (int i = 0; i < n; i++) {
            int mine = i;
            Thread t = new Thread(() -> {
                for (int k = 0; k < 100 + 1000 * mine; k++) {
                    sink = new byte[100 + k % 300];
                }
                done.countDown();
                park();
            }, "allocator-" + i);
            t.setDaemon(true);
            t.start();
        }
        done.await();
    }

    private static void park() {
        try {
            never.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void allocated(PrintStream out) {
        com.sun.management.ThreadMXBean bean = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (Thread t : Thread.getAllStackTraces().keySet()) {
            if (t.getName().startsWith("allocator-")) {
                put(out, t.getName(), bean.getThreadAllocatedBytes(t.getId()));
            }
        }
    }

    /** Its finalizer never ends. */
    static final class Blocked {
        @Override
        protected void finalize() {
            park();
        }
    }

    static final class Finalized {
        @Override
        protected void finalize() {
            sink = null;
        }
    }

    private static void finalizers(int n) throws Exception {
        sink = new Blocked();
        sink = null;
        System.gc();
        Thread.sleep(200);
        for (int i = 0; i < n; i++) {
            sink = new Finalized();
        }
        sink = null;
        for (int i = 0; i < 50 && ManagementFactory.getMemoryMXBean().getObjectPendingFinalizationCount() < n; i++) {
            System.gc();
            Thread.sleep(100); // the Reference Handler puts them into the queue
        }
    }

    /** Loads classes: each loader defines the same one anew. */
    private static void classes(int n) throws Exception {
        java.io.InputStream in = Vitals.class.getResourceAsStream("/truth/Vitals$Finalized.class");
        byte[] code = new byte[1 << 16];
        int size = 0;
        for (int got; (got = in.read(code, size, code.length - size)) > 0; ) {
            size += got;
        }
        for (int i = 0; i < n; i++) {
            kept.add(new Definer().define(code, size));
        }
    }

    /** Runs a method of so many new classes so often that each is to be compiled. */
    private static void methods(int n) throws Exception {
        for (int i = 0; i < n; i++) {
            ClassFile made = new ClassFile("truth/Hot" + i, "java/lang/Runnable", 1);
            // iconst_0, istore_1; iinc 1 1; iload_1, bipush 100, if_icmplt -6; return
            made.method(ClassFile.PUBLIC, "run", "()V", 2, 1, 0x03, 0x3c, 0x84, 1, 1, 0x1b, 0x10, 100, 0xa1, 0xff, 0xfa, 0xb1);
            byte[] code = made.bytes();
            Runnable hot = (Runnable) new Definer().define(code, code.length).getDeclaredConstructor().newInstance();
            kept.add(hot);
            for (int k = 0; k < 400; k++) {
                hot.run();
            }
        }
    }

    private static final class Definer extends ClassLoader {
        Class<?> define(byte[] code, int size) {
            return defineClass(null, code, 0, size);
        }
    }

    private static int deep(int n) {
        return deep(n + 1) + 1;
    }

    private static void overflow() {
        try {
            result = deep(0);
        } catch (StackOverflowError expected) {
            result = 0;
        }
    }

    private static void memory() {
        try {
            List<Object> all = new ArrayList<>();
            for (;;) {
                all.add(new long[16 << 20]);
            }
        } catch (OutOfMemoryError expected) {
            sink = null;
        }
    }

    /** A loop that C2 compiles without a poll, where loops with a counter have none. */
    private static int spin(int n) {
        int x = 1;
        for (int i = 0; i < n; i++) {
            x = x * 31 + i;
        }
        return x;
    }

    /** One thread does not come to a safepoint for seconds, another one asks for a safepoint. */
    private static void hold() throws Exception {
        for (int i = 0; i < 20000; i++) {
            result += spin(1000);
        }
        CountDownLatch begun = new CountDownLatch(1);
        Thread holds = new Thread(() -> {
            begun.countDown();
            for (int i = 0; i < 4; i++) {
                result += spin(Integer.MAX_VALUE);
            }
        }, "holds-out");
        holds.setDaemon(true);
        holds.start();
        begun.await();
        Thread asks = new Thread(System::gc, "asks");
        asks.setDaemon(true);
        asks.start();
    }

    /** Parks while its class is being initialised: the frame of that is native, so the carrier is held. */
    static final class Pinning {
        static {
            LockSupport.park();
        }

        static void touch() {}
    }

    /** Starts virtual threads: the first is pinned, the others park as they should. */
    private static void pin(int n) throws Exception {
        Class<?> builder = Class.forName("java.lang.Thread$Builder$OfVirtual");
        Class<?> base = Class.forName("java.lang.Thread$Builder");
        for (int i = 0; i < n; i++) {
            int mine = i;
            Object made = builder.getMethod("name", String.class)
                    .invoke(Thread.class.getMethod("ofVirtual").invoke(null), "virtual-" + i);
            Runnable work = () -> {
                if (mine == 0) {
                    Pinning.touch();
                } else {
                    LockSupport.park();
                }
            };
            kept.add(base.getMethod("start", Runnable.class).invoke(made, work));
        }
    }
}
