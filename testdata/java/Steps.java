package truth;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * Proves: every walk of a thread that is stepped instruction by instruction agrees with what the
 * instruction did.
 *
 * The thread "stepped" does small pieces of work, each of which goes through another way in or out of a
 * frame, one after the other at random. Each piece's result is known from before and checked. The
 * thread "disturber" forces safepoints, and invalidates compiled code that "stepped" may be in.
 *
 * Meant to be started with the flags of TestSteps: methods leaf* are not inlined, methods excluded*
 * not compiled. Argument: the seed of the order (1).
 */
public final class Steps {
    private static final int ARGUMENTS = 8;

    private static volatile boolean stop;
    private static volatile Throwable wrong;
    private static volatile long rounds;

    private Steps() {}

    /** One piece of work: the same result for the same argument, whenever. */
    interface Work {
        long run(int x) throws Throwable;
    }

    private static final Work[] WORK = {
        Steps::calls, Steps::recursion, Steps::megamorphic, Steps::adapters, Steps::adaptersOfManyArguments,
        Steps::allocation, Steps::exceptions, Steps::newExceptions, Steps::unlocking, Steps::nullChecks,
        Steps::divisions, Steps::arrayBounds, Steps::invalidated, Steps::longLoop, Steps::natives,
        Steps::reflection, Steps::checksums, Steps::compression, Steps::copies, Steps::math,
        Steps::strings, Steps::lambdas, Steps::handles, Steps::hashes, Steps::casts,
    };

    public static void main(String[] args) throws Exception {
        int seed = args.length > 0 ? Integer.parseInt(args[0]) : 1;
        int warm = args.length > 1 ? Integer.parseInt(args[1]) : 2000; // rounds, before anybody looks
        int rest = args.length > 2 ? Integer.parseInt(args[2]) : 2; // ms between two disturbances
        long[][] expected = new long[WORK.length][ARGUMENTS];
        for (int i = 0; i < WORK.length; i++) {
            for (int x = 0; x < ARGUMENTS; x++) {
                expected[i][x] = result(WORK[i], x);
            }
        }
        Thread stepped = start("stepped", () -> work(expected, seed));
        Thread disturber = start("disturber", () -> disturb(rest));
        while (rounds < warm && wrong == null) {
            Thread.sleep(5);
        }
        Control.serve((command, out) -> Control.check(false, "no such command: " + command), () -> {
            stop = true;
            for (Thread thread : new Thread[] {stepped, disturber}) {
                thread.join(60_000);
                Control.check(!thread.isAlive(), thread + " hangs");
            }
            Control.check(wrong == null, String.valueOf(wrong));
        });
    }

    private static Thread start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static long result(Work work, int x) {
        try {
            return work.run(x);
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            wrong = thrown;
            return Long.MIN_VALUE;
        }
    }

    private static void work(long[][] expected, int seed) {
        int random = seed;
        while (!stop) {
            random = random * 1103515245 + 12345;
            int i = (random >>> 16) % WORK.length;
            int x = (random >>> 8) % ARGUMENTS;
            long got = result(WORK[i], x);
            if (got != expected[i][x]) {
                wrong = new IllegalStateException("work " + i + " of " + x + " gave " + got);
                return;
            }
            rounds++;
        }
    }

    private static void disturb(int rest) {
        for (int i = 0; !stop; i++) {
            try {
                Thread.sleep(rest);
            } catch (InterruptedException never) {
                return;
            }
            // Code that has the site's target compiled in is thrown away.
            if (i % 2 == 0) {
                SITE.setTarget(i % 4 == 0 ? TWICE : DOUBLED);
                MutableCallSite.syncAll(new MutableCallSite[] {SITE});
            }
            if (i % 4 == 1) {
                Thread.getAllStackTraces();
            }
            if (i % 128 == 2) {
                System.gc();
            }
        }
    }

    // Calls.

    private static long calls(int x) {
        long sum = 0;
        for (int i = 0; i < 20; i++) {
            sum += leafAdd(i, x) + leafThrough(i) - leafNothing();
        }
        return sum;
    }

    private static int leafAdd(int a, int b) {
        return a + b;
    }

    private static int leafThrough(int a) {
        return leafAdd(leafAdd(a, 1), leafAdd(a, 2));
    }

    private static int leafNothing() {
        return 1;
    }

    private static long recursion(int x) {
        return fibonacci(6 + x % 3) + depth(20 + x);
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    private static int depth(int n) {
        return n == 0 ? 0 : 1 + depth(n - 1);
    }

    interface Shape {
        int area(int x);

        default int twice(int x) {
            return 2 * area(x);
        }
    }

    abstract static class Base implements Shape {
        abstract int edge(int x);

        @Override
        public int area(int x) {
            return edge(x) * edge(x);
        }
    }

    static final class One extends Base {
        @Override
        int edge(int x) {
            return x + 1;
        }
    }

    static class Two extends Base {
        @Override
        int edge(int x) {
            return x + 2;
        }

        @Override
        public int twice(int x) {
            return area(x) + area(x);
        }
    }

    static final class Three extends Two {
        @Override
        public int area(int x) {
            return leafAdd(x, 3);
        }
    }

    static final class Four implements Shape {
        @Override
        public int area(int x) {
            return 4 * x;
        }
    }

    private static final Shape[] SHAPES = {new One(), new Two(), new Three(), new Four()};

    private static long megamorphic(int x) {
        long sum = 0;
        for (int i = 0; i < 16; i++) {
            Shape shape = SHAPES[(i + x) & 3];
            sum += shape.area(i) + shape.twice(x);
            if (shape instanceof Base) {
                sum += ((Base) shape).edge(i);
            }
        }
        return sum;
    }

    // From compiled code into interpreted code and back.

    private static long adapters(int x) {
        long sum = 0;
        for (int i = 0; i < 6; i++) {
            sum += excludedBetween(i, x) + excludedInstance(SHAPES[i & 3], i);
        }
        return sum;
    }

    private static int excludedBetween(int a, int b) {
        return leafAdd(a, b) + excludedLeaf(a);
    }

    private static int excludedLeaf(int a) {
        return a ^ 5;
    }

    private static int excludedInstance(Shape shape, int x) {
        return shape.area(x) + leafNothing();
    }

    private static long adaptersOfManyArguments(int x) {
        double got = excludedMany(x, 2L, 3.0, 4.0f, "five", 6, 7L, 8.0, 9.0f, 10, 11L, 12.0);
        got += leafMany(x, 2L, 3.0, 4.0f, "five", 6, 7L, 8.0, 9.0f, 10, 11L, 12.0);
        return (long) got;
    }

    private static double excludedMany(
            int a, long b, double c, float d, String e, int f, long g, double h, float i, int j, long k, double l) {
        return leafMany(a, b, c, d, e, f, g, h, i, j, k, l) + leafMany(f, g, h, i, e, a, b, c, d, j, k, l);
    }

    private static double leafMany(
            int a, long b, double c, float d, String e, int f, long g, double h, float i, int j, long k, double l) {
        return a + b + c + d + e.length() + f + g + h + i + j + k + l;
    }

    // The heap.

    private static final Object[] kept = new Object[64];

    private static long allocation(int x) {
        for (int i = 0; i < 12; i++) {
            kept[(x * 8 + i) & 63] = new int[i * 10];
        }
        kept[x] = new byte[40_000 + x];
        kept[x + 8] = new Object[3][4];
        return ((byte[]) kept[x]).length + new StringBuilder().append(x).length();
    }

    // Exceptions.

    private static final RuntimeException PREALLOCATED = new RuntimeException("preallocated");

    private static long exceptions(int x) {
        long sum = 0;
        for (int i = 0; i < 4; i++) {
            try {
                sum += leafThrowing(i, x);
            } catch (RuntimeException caught) {
                sum += 100;
            }
        }
        return sum;
    }

    private static int leafThrowing(int i, int x) {
        try {
            return leafThrowingDeeper(i, x) + 1;
        } finally {
            leafNothing();
        }
    }

    private static int leafThrowingDeeper(int i, int x) {
        return (i & 1) == 0 ? excludedThrowing(x) : leafThrow(x);
    }

    private static int excludedThrowing(int x) {
        return leafThrow(x) + 1;
    }

    private static int leafThrow(int x) {
        if (x >= 0) {
            throw PREALLOCATED;
        }
        return 1;
    }

    private static long newExceptions(int x) {
        try {
            return leafThrowNew(x);
        } catch (IllegalStateException caught) {
            return caught.getMessage().length();
        }
    }

    private static int leafThrowNew(int x) {
        throw new IllegalStateException("number " + x);
    }

    private static final Object LOCK = new Object();

    private static long unlocking(int x) {
        long sum = 0;
        try {
            sum += leafLocked(x);
            leafLocked(-1);
        } catch (RuntimeException caught) {
            sum += 7;
        }
        synchronized (LOCK) {
            synchronized (Steps.class) {
                sum += leafAdd(x, 1);
            }
        }
        return sum;
    }

    private static synchronized int leafLocked(int x) {
        return x < 0 ? leafThrow(1) : leafAdd(x, 2);
    }

    // What HotSpot finds out by a signal.

    private static final int[][] ARRAYS = {new int[4], null, new int[9], null};

    private static long nullChecks(int x) {
        long sum = 0;
        for (int i = 0; i < 3; i++) {
            try {
                sum += leafLength(ARRAYS[(i + x) & 3]);
            } catch (NullPointerException caught) {
                sum += 1000;
            }
        }
        return sum;
    }

    private static int leafLength(int[] array) {
        return array.length;
    }

    private static long divisions(int x) {
        long sum = 0;
        for (int i = 0; i < 3; i++) {
            try {
                sum += leafDivide(100, i) + leafDivide(200L, i - 1);
            } catch (ArithmeticException caught) {
                sum += 1000 + x;
            }
        }
        return sum;
    }

    private static int leafDivide(int a, int b) {
        return a / b;
    }

    private static long leafDivide(long a, long b) {
        return a % b;
    }

    private static long arrayBounds(int x) {
        long sum = 0;
        for (int i = 0; i < 3; i++) {
            try {
                sum += leafElement(ARRAYS[0], i * 2 + (x & 1));
            } catch (ArrayIndexOutOfBoundsException caught) {
                sum += 50;
            }
        }
        return sum;
    }

    private static int leafElement(int[] array, int i) {
        return array[i];
    }

    private static long casts(int x) {
        try {
            return leafCast(x % 2 == 0 ? (Object) "text" : (Object) ARRAYS);
        } catch (ClassCastException caught) {
            return -x;
        }
    }

    private static int leafCast(Object o) {
        return ((CharSequence) o).length();
    }

    // Deoptimisation and on-stack replacement.

    private static final MethodHandle TWICE = find("twice");
    private static final MethodHandle DOUBLED = find("doubled");
    private static final MutableCallSite SITE = new MutableCallSite(TWICE);
    private static final MethodHandle INVOKER = SITE.dynamicInvoker();

    private static MethodHandle find(String name) {
        try {
            return MethodHandles.lookup().findStatic(Steps.class, name, MethodType.methodType(int.class, int.class));
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static int twice(int x) {
        return 2 * x;
    }

    private static int doubled(int x) {
        return leafAdd(x, x);
    }

    private static long invalidated(int x) throws Throwable {
        long sum = 0;
        for (int i = 0; i < 10; i++) {
            sum += leafInvalidated(i) + (int) INVOKER.invokeExact(x);
        }
        return sum;
    }

    private static int leafInvalidated(int x) throws Throwable {
        return leafAdd((int) INVOKER.invokeExact(x), leafThrough(x));
    }

    private static long longLoop(int x) throws Throwable {
        long sum = 0;
        for (int i = 0; i < 400; i++) {
            sum += (i ^ x) + (i % 50 == 0 ? (int) INVOKER.invokeExact(i) : 1);
        }
        return sum;
    }

    // Out of Java.

    private static long natives(int x) {
        long zero = System.nanoTime() == 0 ? 1 : 0;
        Object fresh = new Object();
        zero += fresh.hashCode() - System.identityHashCode(fresh);
        zero += Thread.holdsLock(fresh) ? 1 : 0;
        zero += Runtime.getRuntime().totalMemory() == 0 ? 1 : 0;
        zero += System.currentTimeMillis() == 0 ? 1 : 0;
        zero += fresh.getClass().isInstance(null) ? 1 : 0;
        Thread.yield();
        return zero + ("in" + (char) ('a' + x)).intern().length();
    }

    private static final Method REFLECTED = reflected();

    private static Method reflected() {
        try {
            return Steps.class.getDeclaredMethod("leafAdd", int.class, int.class);
        } catch (NoSuchMethodException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static long reflection(int x) throws Exception {
        Class<?> named = Class.forName("truth.Steps");
        return (Integer) REFLECTED.invoke(null, x, 5) + named.getSimpleName().length();
    }

    private static final byte[] BYTES = new byte[300];

    private static long checksums(int x) {
        CRC32 crc = new CRC32();
        crc.update(BYTES, x, 64 + x * 16);
        crc.update(x);
        return crc.getValue();
    }

    private static long compression(int x) {
        Deflater deflater = new Deflater(1);
        deflater.setInput(BYTES, 0, 16 + x);
        deflater.finish();
        int n = deflater.deflate(new byte[100]);
        deflater.end();
        return n;
    }

    private static long copies(int x) {
        int[] ints = new int[40 + x];
        Arrays.fill(ints, x);
        System.arraycopy(ints, 0, ints, 1, 30 + x);
        Object[] objects = Arrays.copyOf(SHAPES, 4 + x);
        byte[] bytes = BYTES.clone();
        char[] chars = "the quick brown fox jumps over the lazy dog".toCharArray();
        System.arraycopy(chars, 3, chars, 0, 20 + x);
        Arrays.sort(ints);
        return ints[x] + objects.length + bytes.length + chars[5];
    }

    private static long math(int x) {
        double d = Math.sin(x) + Math.pow(x + 1, 1.5) + Math.log(x + 2) + Math.exp(x / 8.0) + Math.tan(x) + Math.sqrt(x);
        return (long) d + (long) ((x + 0.5) % 3.0) + Long.hashCode(Double.doubleToRawLongBits(x));
    }

    private static long strings(int x) {
        String s = "a string of number " + x;
        return s.indexOf("number") + s.hashCode() + s.substring(2, 8).compareTo("strinG") + s.replace('a', 'b').length()
                + (s.equals("a string of number 3") ? 1 : 0) + s.toUpperCase().charAt(3);
    }

    private static long lambdas(int x) {
        return IntStream.range(0, 5 + x).map(i -> leafAdd(i, x)).filter(i -> (i & 1) == 0).sum();
    }

    private static final MethodHandle BOUND = MethodHandles.insertArguments(adder(), 1, 3);

    private static MethodHandle adder() {
        try {
            MethodType type = MethodType.methodType(int.class, int.class, int.class);
            return MethodHandles.lookup().findStatic(Steps.class, "leafAdd", type);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    // Not final: so it is called through a linker, and not compiled in.
    private static MethodHandle changing = BOUND;

    private static long handles(int x) throws Throwable {
        MethodHandle handle = changing;
        return (int) handle.invokeExact(x) + (int) BOUND.invokeExact(x) + (int) (Integer) handle.invoke((Integer) x);
    }

    private static long hashes(int x) {
        Map<String, Integer> map = new HashMap<>();
        for (int i = 0; i < 6; i++) {
            map.merge("key" + (i + x) % 4, i, Integer::sum);
        }
        return map.values().stream().mapToInt(Integer::intValue).sum() + map.size();
    }
}
