package truth;

import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: stacks of mounted virtual threads are whole, and of the thread that ran. Needs JDK 21; it is
 * compiled for 8, hence the reflection.
 *
 * Virtual threads descend (root, so many times down, leaf), and at their deepest point park for a
 * millisecond and compute for about as long, in turns. So their callers are in the heap nearly all the time.
 *
 *   threads   how many (16)
 *   down      how deep (25)
 *   pinned    with "pinned" a native method is among their callers, so they stay mounted while they park
 *             (-Djdk.reflect.useNativeAccessorOnly=true: what is called by reflection is called by a native method)
 *   work      how many rounds of a loop make a turn (700000)
 *
 * The command "turns" prints how many turns were taken. Thread number i is named "load-i"; the odd ones
 * have no name.
 */
public final class VirtualLoad {
    private VirtualLoad() {}

    private static volatile boolean stop;
    private static int work = 700_000;
    private static final java.util.concurrent.atomic.AtomicLong TURNS = new java.util.concurrent.atomic.AtomicLong();

    public static void main(String[] args) throws Exception {
        int count = args.length > 0 ? Integer.parseInt(args[0]) : 16;
        int depth = args.length > 1 ? Integer.parseInt(args[1]) : 25;
        boolean pinned = args.length > 2 && args[2].equals("pinned");
        work = args.length > 3 ? Integer.parseInt(args[3]) : work;
        Method root = VirtualLoad.class.getDeclaredMethod("root", int.class);
        Thread[] threads = new Thread[count];
        long[] sums = new long[count];
        for (int i = 0; i < count; i++) {
            int number = i;
            threads[i] = start(i % 2 == 0 ? "load-" + i : "", () -> sums[number] = pinned ? reflected(root, depth) : root(depth));
        }
        while (TURNS.get() < 20L * count) {
            Thread.sleep(5);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("turns"), "no such command: " + command);
            out.println(TURNS.get());
        }, () -> {
            stop = true;
            for (int i = 0; i < count; i++) {
                threads[i].join(60_000);
                Control.check(!threads[i].isAlive() && sums[i] != 0, threads[i] + " hangs");
            }
        });
    }

    private static long reflected(Method root, int depth) {
        try {
            return (long) root.invoke(null, depth);
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static long root(int depth) {
        return down(depth) + 1;
    }

    private static long down(int levels) {
        return levels == 1 ? leaf() + 1 : down(levels - 1) + 1;
    }

    private static long leaf() {
        long sum = 0;
        while (!stop) {
            LockSupport.parkNanos(1_000_000);
            sum += burn(sum);
            TURNS.incrementAndGet();
        }
        return sum;
    }

    private static long burn(long from) {
        long x = from | 1;
        int rounds = work;
        for (int i = 0; i < rounds; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    private static Thread start(String name, Runnable task) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) type.getMethod("start", Runnable.class).invoke(builder, task);
    }
}
