package truth;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * One thread for each shape of running code: stubs, intrinsics, VM calls, exceptions, megamorphic calls
 * and so on. Each loop runs in rounds and checks the result of each round, so that a profiler that
 * disturbs its target is found out.
 */
final class Spinning implements Runnable {
    /** One round of a loop; gives back a number that is the same in every round. */
    interface Round {
        long run() throws Exception;
    }

    final String name;
    final String method;
    final Thread thread;
    private final Round round;
    private volatile long rounds;
    private volatile boolean stop;
    private volatile Throwable wrong;

    private Spinning(String name, String method, Round round) {
        this.name = name;
        this.method = method;
        this.round = round;
        thread = new Thread(this, name);
        thread.setDaemon(true);
    }

    @Override
    public void run() {
        try {
            long first = round.run();
            while (!stop) {
                long result = round.run();
                Control.check(result == first, name + ": " + result + " after " + first);
                rounds++;
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }

    void awaitRounds(long count) throws InterruptedException {
        while (rounds < count) {
            Control.check(wrong == null, name + ": " + wrong);
            Thread.sleep(2);
        }
    }

    void verify() throws InterruptedException {
        stop = true;
        thread.join(60_000);
        Control.check(wrong == null, name + ": " + wrong);
        Control.check(!thread.isAlive(), name + " hangs");
    }

    static Spinning[] all() {
        return new Spinning[] {
            new Spinning("spin-arraycopy", "spinArraycopy", Spinning::spinArraycopy),
            new Spinning("spin-crc32", "spinCrc32", Spinning::spinCrc32),
            new Spinning("spin-nanotime", "spinNanoTime", Spinning::spinNanoTime),
            new Spinning("spin-exceptions", "spinExceptions", Spinning::spinExceptions),
            new Spinning("spin-math", "spinMath", Spinning::spinMath),
            new Spinning("spin-zlib", "spinZlib", Spinning::spinZlib),
            new Spinning("spin-strings", "spinStrings", Spinning::spinStrings),
            new Spinning("spin-nullcheck", "spinNullCheck", Spinning::spinNullCheck),
            new Spinning("spin-interface", "spinInterface", Spinning::spinInterface),
            new Spinning("spin-virtual", "spinVirtual", Spinning::spinVirtual),
            new Spinning("spin-recursion", "spinRecursion", Spinning::spinRecursion),
            new Spinning("spin-allocation", "spinAllocation", Spinning::spinAllocation),
            new Spinning("spin-gc", "spinGc", Spinning::spinGc),
            new Spinning("spin-interpreted", "interpretedLoop", Spinning::interpretedLoop),
            new Spinning("spin-reflection", "spinReflection", Spinning::spinReflection),
            new Spinning("spin-lock", "spinLock", Spinning::spinLock),
        };
    }

    static byte[] bytes(int length) {
        byte[] data = new byte[length];
        for (int i = 0; i < length; i++) {
            data[i] = (byte) (i * 31 + (i >> 3));
        }
        return data;
    }

    private static final byte[] DATA = bytes(1 << 14);

    private static long spinArraycopy() {
        byte[] to = new byte[DATA.length];
        for (int i = 0; i < 500; i++) {
            System.arraycopy(DATA, i & 7, to, 3, DATA.length - 16);
        }
        return Arrays.hashCode(to);
    }

    private static long spinCrc32() {
        CRC32 crc = new CRC32();
        for (int i = 0; i < 250; i++) {
            crc.update(DATA, 0, DATA.length);
        }
        return crc.getValue();
    }

    private static long spinNanoTime() {
        long before = System.nanoTime();
        long backwards = 0;
        for (int i = 0; i < 50_000; i++) {
            long now = System.nanoTime();
            if (now < before) {
                backwards++;
            }
            before = now;
        }
        return backwards;
    }

    private static long spinExceptions() {
        long caught = 0;
        for (int i = 0; i < 500; i++) {
            try {
                throwThrough(12, i);
            } catch (IllegalStateException asMeant) {
                caught++;
            }
        }
        return caught;
    }

    private static int throwThrough(int depth, int n) {
        if (depth == 0) {
            throw new IllegalStateException();
        }
        return throwThrough(depth - 1, n) + n;
    }

    private static long spinMath() {
        double sum = 0;
        for (int i = 1; i < 5_000; i++) {
            sum += Math.sin(i) * Math.cos(i + 0.5) + Math.pow(i, 0.3) + Math.exp(-i * 0.001) + Math.log(i) + Math.tan(i);
        }
        // The last bits may differ between the interpreter's way and the compiled one.
        return Math.round(sum);
    }

    // Deflater's methods for direct buffers, null on JDK 8. With arrays, JDKs before 22 hold off the
    // collector while they compress; a thread that is preempted meanwhile starves others of memory until
    // they get an OutOfMemoryError (JDK-8192647). Under a storm of collections that does happen.
    private static final Method SET_INPUT = findOrNull(Deflater.class, "setInput", ByteBuffer.class);
    private static final Method DEFLATE = findOrNull(Deflater.class, "deflate", ByteBuffer.class);
    private static final ByteBuffer DIRECT = ByteBuffer.allocateDirect(DATA.length);
    /** Used by one thread. */
    private static final ByteBuffer OUT = ByteBuffer.allocateDirect(DATA.length);

    static {
        DIRECT.put(DATA);
    }

    private static long spinZlib() throws Exception {
        Deflater deflater = new Deflater();
        try {
            return SET_INPUT != null ? deflateDirect(deflater) : deflateArray(deflater);
        } finally {
            deflater.end();
        }
    }

    private static long deflateDirect(Deflater deflater) throws Exception {
        ByteBuffer in = DIRECT.duplicate();
        in.flip();
        SET_INPUT.invoke(deflater, in);
        deflater.finish();
        ByteBuffer out = OUT;
        long total = 0;
        while (!deflater.finished()) {
            out.clear();
            total += (Integer) DEFLATE.invoke(deflater, out);
        }
        return total;
    }

    private static long deflateArray(Deflater deflater) {
        deflater.setInput(DATA);
        deflater.finish();
        byte[] out = new byte[DATA.length];
        long total = 0;
        while (!deflater.finished()) {
            total += deflater.deflate(out);
        }
        return total;
    }

    private static long spinStrings() {
        String latin = new String(new char[300]).replace('\0', 'x');
        String wide = latin + "\u20ac";
        long sum = 0;
        for (int i = 0; i < 100; i++) {
            char[] chars = latin.toCharArray();
            String again = new String(chars);
            sum += again.equals(latin) ? 1 : 0;
            sum += again.compareTo(wide) < 0 ? 1 : 0;
            sum += wide.indexOf("\u20ac");
            sum += (again + i).hashCode() & 7;
        }
        return sum;
    }

    private static final String[] SOMETIMES_NULL = {"a", null, "b", null, null, "c", "d"};

    /** Implicit null checks: HotSpot lets the load fault and finds its way back from the SIGSEGV. */
    private static long spinNullCheck() {
        long sum = 0;
        for (int i = 0; i < 3_000; i++) {
            try {
                sum += lengthOf(SOMETIMES_NULL[i % SOMETIMES_NULL.length]);
            } catch (NullPointerException asMeant) {
                sum += 3;
            }
        }
        return sum;
    }

    private static int lengthOf(String text) {
        return text.length();
    }

    interface Op {
        int apply(int n);
    }

    abstract static class Base implements Op {
        abstract int virtual(int n);
    }

    static final class A extends Base {
        public int apply(int n) { return n + 1; }
        int virtual(int n) { return n ^ 1; }
    }

    static final class B extends Base {
        public int apply(int n) { return n + 2; }
        int virtual(int n) { return n ^ 2; }
    }

    static final class C extends Base {
        public int apply(int n) { return n + 3; }
        int virtual(int n) { return n ^ 3; }
    }

    static final class D extends Base {
        public int apply(int n) { return n + 4; }
        int virtual(int n) { return n ^ 4; }
    }

    private static final Base[] BASES = {new A(), new B(), new C(), new D()};
    private static final Op[] OPS = BASES;

    private static long spinInterface() {
        int n = 0;
        for (int i = 0; i < 50_000; i++) {
            n = OPS[i & 3].apply(n);
        }
        return n;
    }

    private static long spinVirtual() {
        int n = 0;
        for (int i = 0; i < 50_000; i++) {
            n = BASES[i & 3].virtual(n) + 1;
        }
        return n;
    }

    private static long spinRecursion() {
        long sum = 0;
        for (int i = 0; i < 50; i++) {
            sum += descend(700, i);
        }
        return sum;
    }

    private static int descend(int depth, int n) {
        return depth == 0 ? n : descend(depth - 1, n) + 1;
    }

    private static long spinAllocation() {
        long sum = 0;
        List<Object> kept = new ArrayList<>();
        for (int i = 0; i < 8_000; i++) {
            Object[] made = new Object[8 + (i & 63)];
            made[0] = new int[] {i};
            if ((i & 1023) == 0) {
                kept.add(made);
            }
            sum += made.length;
        }
        return sum + kept.size();
    }

    /** A safepoint storm; it sleeps between, so that the others get to run. */
    private static long spinGc() throws InterruptedException {
        System.gc();
        Thread.sleep(30);
        return 0;
    }

    /** Never compiled: its name begins with "interpreted". */
    private static long interpretedLoop() {
        long sum = 0;
        for (int i = 0; i < 50_000; i++) {
            sum = interpretedStep(sum, i);
        }
        return sum;
    }

    private static long interpretedStep(long sum, int i) {
        return sum * 31 + (i ^ (sum >> 7));
    }

    private static final Method STEP = findOrNull(Spinning.class, "interpretedStep", long.class, int.class);

    private static Method findOrNull(Class<?> in, String name, Class<?>... types) {
        try {
            return in.getDeclaredMethod(name, types);
        } catch (NoSuchMethodException none) {
            return null;
        }
    }

    private static long spinReflection() throws Exception {
        long sum = 0;
        for (int i = 0; i < 2_000; i++) {
            sum = (Long) STEP.invoke(null, sum, i);
        }
        return sum;
    }

    private static final Object LOCK = new Object();

    private static long spinLock() {
        long sum = 0;
        for (int i = 0; i < 20_000; i++) {
            synchronized (LOCK) {
                sum += i;
            }
        }
        return sum;
    }
}
