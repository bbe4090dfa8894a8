package truth;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: a stack that goes from Java to C by a downcall, and back by an upcall, is walked whole (JDK 22 on;
 * java.lang.foreign). It is compiled for Java 8, hence the reflection.
 *
 * Java calls libc's qsort, which calls a comparator in Java. One thread stands still in the comparator's
 * first call ("standing"), one sorts all the time ("sorting"). What they call is, from the root up:
 * sort, qsort of libc, compare.
 */
public final class Foreign {
    private Foreign() {}

    private static final int LENGTH = 64;

    private static MethodHandle qsort;
    private static Object comparator;
    private static Method allocate;
    private static Object arena;
    private static Method get;
    private static Method set;
    private static Object longLayout;
    private static final CountDownLatch STANDING = new CountDownLatch(1);
    private static volatile boolean open;
    private static volatile boolean stop;
    private static volatile long sorts;
    private static volatile Throwable wrong;

    public static void main(String[] args) throws Throwable {
        link();
        Thread standing = new Thread(() -> run(false), "standing");
        standing.start();
        STANDING.await();
        Thread sorting = new Thread(() -> run(true), "sorting");
        sorting.start();
        while (sorts < 200 && wrong == null) {
            Thread.sleep(1);
        }
        Control.serve((command, out) -> {
            throw new IllegalStateException("no such command: " + command);
        }, () -> {
            open = true;
            stop = true;
            LockSupport.unpark(standing);
            standing.join(20_000);
            sorting.join(20_000);
            Control.check(wrong == null && sorts > 0, sorts + " sorts, " + wrong);
        });
    }

    private static Class<?> foreign(String name) throws Exception {
        return Class.forName("java.lang.foreign." + name);
    }

    /** Makes a handle for void qsort(void *base, size_t n, size_t size, int (*compare)(void *, void *)), and compare's address. */
    private static void link() throws Throwable {
        Class<?> layouts = foreign("ValueLayout");
        Class<?> layout = foreign("MemoryLayout");
        Class<?> segment = foreign("MemorySegment");
        Class<?> function = foreign("FunctionDescriptor");
        Class<?> arenas = foreign("Arena");
        Object address = layouts.getField("ADDRESS").get(null);
        longLayout = layouts.getField("JAVA_LONG").get(null);
        Object none = Array.newInstance(foreign("Linker$Option"), 0);
        Object linker = foreign("Linker").getMethod("nativeLinker").invoke(null);
        Object lookup = foreign("Linker").getMethod("defaultLookup").invoke(linker);
        Object found = ((Optional<?>) foreign("SymbolLookup").getMethod("find", String.class).invoke(lookup, "qsort")).get();
        Class<?> array = Array.newInstance(layout, 0).getClass();
        Object sortType = function.getMethod("ofVoid", array).invoke(null, (Object) layouts(layout, address, longLayout, longLayout, address));
        qsort = (MethodHandle) foreign("Linker").getMethod("downcallHandle", segment, function, none.getClass()).invoke(linker, found, sortType, none);

        // Comparators get pointers; with a target layout they may be read through.
        Object pointer = foreign("AddressLayout").getMethod("withTargetLayout", layout).invoke(address, longLayout);
        Object intLayout = layouts.getField("JAVA_INT").get(null);
        Object compareType = function.getMethod("of", layout, array).invoke(null, intLayout, layouts(layout, pointer, pointer));
        MethodHandle compare = MethodHandles.lookup().findStatic(Foreign.class, "compare", MethodType.methodType(int.class, Object.class, Object.class));
        arena = arenas.getMethod("global").invoke(null);
        comparator = foreign("Linker").getMethod("upcallStub", MethodHandle.class, function, arenas, none.getClass())
            .invoke(linker, compare.asType(MethodType.methodType(int.class, segment, segment)), compareType, arena, none);
        allocate = arenas.getMethod("allocate", long.class, long.class);
        get = segment.getMethod("getAtIndex", foreign("ValueLayout$OfLong"), long.class);
        set = segment.getMethod("setAtIndex", foreign("ValueLayout$OfLong"), long.class, long.class);
    }

    private static Object layouts(Class<?> type, Object... all) {
        Object array = Array.newInstance(type, all.length);
        for (int i = 0; i < all.length; i++) {
            Array.set(array, i, all[i]);
        }
        return array;
    }

    private static void run(boolean again) {
        try {
            Object data = allocate.invoke(arena, 8L * LENGTH, 8L);
            do {
                sort(data);
            } while (again && !stop);
        } catch (Throwable thrown) {
            wrong = thrown;
            STANDING.countDown();
        }
    }

    private static void sort(Object data) throws Throwable {
        for (long i = 0; i < LENGTH; i++) {
            set.invoke(data, longLayout, i, (i * 37) % LENGTH);
        }
        qsort.invoke(data, (long) LENGTH, 8L, comparator);
        for (long i = 0; i < LENGTH; i++) {
            Control.check((long) get.invoke(data, longLayout, i) == i, "not sorted");
        }
        sorts++;
    }

    static int compare(Object a, Object b) {
        try {
            if (!open && Thread.currentThread().getName().equals("standing")) {
                STANDING.countDown();
                while (!open) {
                    LockSupport.park();
                }
            }
            return Long.compare((long) get.invoke(a, longLayout, 0L), (long) get.invoke(b, longLayout, 0L));
        } catch (Exception thrown) {
            wrong = thrown;
            return 0;
        }
    }
}
