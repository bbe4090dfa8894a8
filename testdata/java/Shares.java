package truth;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * Proves: shares of CPU time are estimated without bias, whatever shape the code has.
 *
 * A busy thread (or several) runs twelve buckets, each a method bucketX with a shape of its own, in
 * slices of a few milliseconds, in a seeded random order, by a table of shares. The thread's CPU time
 * is read before and after each slice: their sums are the truth that a profiler's estimate is held
 * against. What the thread does between slices is the truth's "other".
 *
 * Arguments: threads (1), seed (1), milliseconds of rest after each slice (0). With rest a program begins soon, and leaves
 * the CPU to others: for tests that measure nothing. Commands:
 *   mark     start counting anew
 *   truth    one line of JSON: {"cpu_ns":N,"slices":N,"shares":{"bucketArraycopy":0.2,...,"other":0.001}}
 *
 * Needs no JVM flags: bucketInterpreted is a method that HotSpot never compiles, because it is huge.
 */
public final class Shares {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final long SLICE_NS = 2_000_000;

    /** A piece of work of one shape; gives back a number so that nothing is optimised away. */
    interface Bucket {
        long run(Shares shares, int units) throws Exception;
    }

    private enum Shape {
        bucketArraycopy(0.18, Shares::bucketArraycopy),
        bucketCrc32(0.15, Shares::bucketCrc32),
        bucketExceptions(0.10, Shares::bucketExceptions),
        bucketMath(0.10, Shares::bucketMath),
        bucketZlib(0.10, Shares::bucketZlib),
        bucketMegamorphic(0.10, Shares::bucketMegamorphic),
        bucketRecursion(0.07, Shares::bucketRecursion),
        bucketInterpreted(0.06, Shares::bucketInterpreted),
        bucketStrings(0.05, Shares::bucketStrings),
        bucketAllocation(0.05, Shares::bucketAllocation),
        bucketNanoTime(0.02, Shares::bucketNanoTime),
        bucketReflection(0.02, Shares::bucketReflection);

        final double share;
        final Bucket bucket;

        Shape(double share, Bucket bucket) {
            this.share = share;
            this.bucket = bucket;
        }
    }

    private static final Shape[] SHAPES = Shape.values();

    private final Random random;
    /** How many units of each bucket make a slice; it follows the code's speed. */
    private final double[] units = new double[SHAPES.length];
    private final Usual usual = new Usual();
    private volatile boolean stop;
    private volatile boolean warm;
    private volatile Throwable wrong;

    // The sums since the last mark, of one thread; read by another one, hence synchronized.
    private final long[] nanos = new long[SHAPES.length];
    private long slices;
    private long cpuAtMark;
    private long cpuNow;

    private final long rest;

    private Shares(long seed, long rest) {
        random = new Random(seed);
        this.rest = rest;
    }

    public static void main(String[] args) throws Exception {
        int count = args.length > 0 ? Integer.parseInt(args[0]) : 1;
        long seed = args.length > 1 ? Long.parseLong(args[1]) : 1;
        long rest = args.length > 2 ? Long.parseLong(args[2]) : 0;
        Shares[] all = new Shares[count];
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            Shares one = all[i] = new Shares(seed + i, rest);
            threads[i] = new Thread(one::work, "shares-" + i);
            threads[i].setDaemon(true);
            threads[i].start();
        }
        for (Shares one : all) {
            while (!one.warm) {
                Control.check(one.wrong == null, String.valueOf(one.wrong));
                Thread.sleep(5);
            }
        }
        Control.serve((command, out) -> {
            switch (command) {
                case "mark":
                    for (Shares one : all) {
                        one.mark();
                    }
                    break;
                case "truth":
                    printTruth(all, out);
                    break;
                default:
                    throw new IllegalArgumentException("no such command: " + command);
            }
        }, () -> {
            for (int i = 0; i < count; i++) {
                all[i].stop = true;
                threads[i].join(20_000);
                Control.check(!threads[i].isAlive(), threads[i] + " hangs");
                Control.check(all[i].wrong == null, String.valueOf(all[i].wrong));
            }
        });
    }

    private void work() {
        try {
            calibrate();
            warm = true;
            while (!stop) {
                slice(pick());
                if (rest > 0) {
                    Thread.sleep(rest);
                }
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }

    /** Runs every bucket until its code is compiled and its slices have found their length. */
    private void calibrate() throws Exception {
        Arrays.fill(units, 1);
        for (int round = rest > 0 ? 55 : 0; round < 60; round++) {
            for (Shape shape : SHAPES) {
                slice(shape);
            }
        }
        mark();
    }

    private Shape pick() {
        double at = random.nextDouble();
        for (Shape shape : SHAPES) {
            at -= shape.share;
            if (at < 0) {
                return shape;
            }
        }
        return SHAPES[0];
    }

    /** Runs one slice, between half and one and a half times as long as the others, against lockstep. */
    private void slice(Shape shape) throws Exception {
        int which = shape.ordinal();
        int n = Math.max(1, (int) (units[which] * (0.5 + random.nextDouble())));
        long before = THREADS.getCurrentThreadCpuTime();
        shape.bucket.run(this, n);
        long after = THREADS.getCurrentThreadCpuTime();
        count(which, before, after);
        // Toward what would have been right, but never far at once: one odd slice shall not matter.
        double right = n * (double) SLICE_NS / Math.max(1, after - before);
        units[which] = Math.max(1, Math.min(1e7, Math.min(units[which] * 2, 0.8 * units[which] + 0.2 * right)));
    }

    private synchronized void count(int which, long before, long after) {
        if (cpuAtMark == 0) {
            cpuAtMark = before;
        }
        cpuNow = after;
        if (usual.isFar(after - before)) {
            cpuAtMark += after - before; // as if it had not been
            return;
        }
        nanos[which] += after - before;
        slices++;
    }

    private synchronized void mark() {
        Arrays.fill(nanos, 0);
        cpuAtMark = 0;
        cpuNow = 0;
        slices = 0;
    }

    private synchronized void addTo(long[] sums) {
        for (int i = 0; i < nanos.length; i++) {
            sums[i] += nanos[i];
        }
        sums[nanos.length] += cpuNow - cpuAtMark;
        sums[nanos.length + 1] += slices;
    }

    private static void printTruth(Shares[] all, PrintStream out) {
        long[] sums = new long[SHAPES.length + 2];
        for (Shares one : all) {
            one.addTo(sums);
        }
        long total = sums[SHAPES.length];
        long counted = 0;
        StringBuilder json = new StringBuilder("{\"cpu_ns\":" + total + ",\"slices\":" + sums[SHAPES.length + 1] + ",\"shares\":{");
        for (Shape shape : SHAPES) {
            counted += sums[shape.ordinal()];
            json.append('"').append(shape).append("\":").append(sums[shape.ordinal()] / (double) Math.max(1, total)).append(',');
        }
        json.append("\"other\":").append((total - counted) / (double) Math.max(1, total)).append("}}");
        out.println(json);
    }

    // The buckets.

    private static final byte[] DATA = Spinning.bytes(1 << 14);
    private final byte[] copy = new byte[1 << 14];
    private final CRC32 crc = new CRC32();
    private final Deflater deflater = new Deflater();
    private Object kept;

    private long bucketArraycopy(int units) {
        for (int i = 0; i < units; i++) {
            System.arraycopy(DATA, i & 15, copy, 5, DATA.length - 32);
        }
        Control.check(copy[5 + 100] == DATA[((units - 1) & 15) + 100], "arraycopy");
        return copy[7];
    }

    private long bucketCrc32(int units) {
        crc.reset();
        for (int i = 0; i < units; i++) {
            crc.update(DATA, 0, DATA.length);
        }
        return crc.getValue();
    }

    private long bucketExceptions(int units) {
        long caught = 0;
        for (int i = 0; i < units; i++) {
            try {
                throwThrough(8);
            } catch (IllegalStateException asMeant) {
                caught++;
            }
        }
        Control.check(caught == units, "exceptions");
        return caught;
    }

    private static int throwThrough(int depth) {
        if (depth == 0) {
            throw new IllegalStateException();
        }
        return throwThrough(depth - 1) + 1;
    }

    private long bucketMath(int units) {
        double sum = 0;
        for (int i = 1; i <= units; i++) {
            sum += Math.sin(i) + Math.pow(i, 0.3) + Math.exp(-i * 0.001) + Math.log(i) + Math.tan(i * 0.1);
        }
        Control.check(!Double.isNaN(sum), "math");
        return Math.round(sum);
    }

    private long bucketZlib(int units) {
        long total = 0;
        for (int i = 0; i < units; i++) {
            deflater.reset();
            deflater.setInput(DATA, (i & 7) * 64, 4_096);
            deflater.finish();
            total += deflater.deflate(copy);
        }
        Control.check(total > 0, "zlib");
        return total;
    }

    private long bucketMegamorphic(int units) {
        int n = 0;
        for (int i = 0; i < units; i++) {
            n = OPS[i & 3].apply(n);
        }
        return n;
    }

    private static final Spinning.Op[] OPS = {new Spinning.A(), new Spinning.B(), new Spinning.C(), new Spinning.D()};

    private long bucketRecursion(int units) {
        long sum = 0;
        for (int i = 0; i < units; i++) {
            sum += descend(300, i);
        }
        return sum;
    }

    private static int descend(int depth, int n) {
        return depth == 0 ? n : descend(depth - 1, n) + 1;
    }

    /**
     * Never compiled, without any flag: javac copies a finally block once for the normal way out and
     * once for exceptions, so nine of them in each other hold the loop 512 times, which is far more than
     * the 8,000 bytes of bytecode beyond which HotSpot leaves a method alone (DontCompileHugeMethods).
     * The copies are alike; one of them runs.
     */
    private long bucketInterpreted(int units) {
        long sum = units;
        try { sum++; } finally {
            try { sum++; } finally {
                try { sum++; } finally {
                    try { sum++; } finally {
                        try { sum++; } finally {
                            try { sum++; } finally {
                                try { sum++; } finally {
                                    try { sum++; } finally {
                                        try { sum++; } finally {
                                            for (int i = 0; i < units; i++) {
                                                sum = sum * 31 + (i ^ (sum >> 7));
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        return sum;
    }

    private static final String TEXT = new String(new char[200]).replace('\0', 'y');

    private long bucketStrings(int units) {
        long sum = 0;
        for (int i = 0; i < units; i++) {
            String again = new String(TEXT.toCharArray());
            sum += again.equals(TEXT) ? 1 : 0;
            sum += again.indexOf("yyz") + (again + i).hashCode() % 3;
        }
        return sum;
    }

    private long bucketAllocation(int units) {
        long sum = 0;
        for (int i = 0; i < units; i++) {
            Object[] made = new Object[16 + (i & 127)];
            made[0] = kept == null ? made : null;
            kept = made;
            sum += made.length;
        }
        kept = null;
        return sum;
    }

    private long bucketNanoTime(int units) {
        long first = System.nanoTime();
        long last = first;
        for (int i = 0; i < units; i++) {
            last = System.nanoTime();
        }
        Control.check(last >= first, "nanoTime ran backwards");
        return last - first;
    }

    private static final Method STEP;

    static {
        try {
            STEP = Shares.class.getDeclaredMethod("reflected", int.class);
        } catch (NoSuchMethodException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private long bucketReflection(int units) throws Exception {
        int n = 0;
        for (int i = 0; i < units; i++) {
            n = (Integer) STEP.invoke(null, n);
        }
        Control.check(n == units, "reflection");
        return n;
    }

    private static int reflected(int n) {
        return n + 1;
    }
}
