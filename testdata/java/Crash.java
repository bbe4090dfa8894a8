package truth;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.Inflater;

/**
 * Proves: what a core file tells of a JVM that has crashed. Threads "waiter-N" stand N frames deep, and never move, so
 * that they can be looked at before. A command says how the JVM is to die: "vm" within libjvm, "compiled" in compiled
 * code, "native" in a native library, "collect" has the collector work all the time until a signal is sent.
 */
public final class Crash {
    private Crash() {}

    private static final MethodHandle PUT = putLong();
    private static volatile Object garbage;

    public static void main(String[] args) throws Exception {
        for (int depth = 10; depth <= 30; depth += 10) {
            int frames = depth;
            Thread waiter = new Thread(() -> stand(frames), "waiter-" + depth);
            waiter.setDaemon(true);
            waiter.start();
            while (waiter.getState() != Thread.State.WAITING) {
                Thread.sleep(1);
            }
        }
        Control.serve((command, out) -> die(command), () -> {});
    }

    private static int stand(int frames) {
        if (frames > 1) {
            return stand(frames - 1) + 1;
        }
        while (true) {
            LockSupport.park();
        }
    }

    private static void die(String how) throws Exception {
        switch (how) {
            case "vm":
                put(0, 1);
                break;
            case "compiled":
                compiled();
                break;
            case "native":
                inNative();
                break;
            case "collect":
                collect();
                break;
            default:
                throw new IllegalArgumentException(how);
        }
    }

    private static void compiled() throws Exception {
        long good = (long) unsafe().getClass().getMethod("allocateMemory", long.class).invoke(unsafe(), 8L);
        for (int i = 0; i < 2_000_000; i++) {
            put(good, i);
        }
        put(16, 1);
    }

    private static void put(long address, long value) {
        try {
            PUT.invokeExact(address, value);
        } catch (Throwable never) {
            throw new IllegalStateException(never);
        }
    }

    /** zlib is given a pointer to nothing. */
    private static void inNative() throws Exception {
        Method end = Inflater.class.getDeclaredMethod("end", long.class);
        end.setAccessible(true);
        end.invoke(null, 24L);
    }

    private static void collect() {
        Thread thread = new Thread(() -> {
            while (true) {
                garbage = new byte[100_000];
                System.gc();
            }
        }, "litter");
        thread.setDaemon(true);
        thread.start();
    }

    private static MethodHandle putLong() {
        try {
            Object unsafe = unsafe();
            Method put = unsafe.getClass().getMethod("putLong", long.class, long.class);
            return MethodHandles.lookup().unreflect(put).bindTo(unsafe);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Object unsafe() throws ReflectiveOperationException {
        Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return field.get(null);
    }
}
