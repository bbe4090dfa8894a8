package truth;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Random;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * Proves: samples are no more likely in one of four parts that follow each other in lockstep than its CPU time makes
 * them: long native calls, each followed by a little Java. Timers that fire at the kernel's ticks or at the end of a system
 * call see one kind for the other there.
 *
 * One thread, "mix", runs the parts in turn and reads its CPU time between them in one round of sixteen, any one: to read it has
 * the kernel bring up to date what it has charged the thread, so that whoever follows that would see it move just there.
 * Commands: "mark" begins to count anew, "truth" prints the share of each part since then, as JSON.
 */
public final class Mix {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final String[] NAMES = {"deflate", "afterDeflate", "inflate", "afterInflate"};
    private static final long[] USED = new long[4];
    private static final byte[] PLAIN = new byte[1 << 16], PACKED = new byte[1 << 17], UNPACKED = new byte[1 << 16];
    static volatile long sink;

    private Mix() {}

    public static void main(String[] args) throws Exception {
        Random random = new Random(1);
        for (int i = 0; i < PLAIN.length; i++) {
            PLAIN[i] = (byte) (random.nextInt(8) * random.nextInt(8));
        }
        Thread thread = new Thread(Mix::mix, "mix");
        thread.setDaemon(true);
        thread.start();
        Control.serve((command, out) -> {
            synchronized (USED) {
                if (command.equals("mark")) {
                    java.util.Arrays.fill(USED, 0);
                    return;
                }
                long all = USED[0] + USED[1] + USED[2] + USED[3];
                StringBuilder json = new StringBuilder("{\"shares\":{");
                for (int i = 0; i < NAMES.length; i++) {
                    json.append(i == 0 ? "" : ",").append('"').append(NAMES[i]).append("\":").append((double) USED[i] / all);
                }
                out.println(json.append("}}"));
            }
        }, () -> {});
    }

    private static void mix() {
        Deflater deflater = new Deflater();
        Inflater inflater = new Inflater();
        long[] at = new long[5];
        Usual usual = new Usual();
        int random = 1;
        while (true) {
            random ^= random << 13;
            random ^= random >>> 17;
            random ^= random << 5;
            boolean read = (random & 15) == 0;
            at[0] = read ? THREADS.getCurrentThreadCpuTime() : 0;
            int packed = deflate(deflater);
            at[1] = read ? THREADS.getCurrentThreadCpuTime() : 0;
            afterDeflate();
            at[2] = read ? THREADS.getCurrentThreadCpuTime() : 0;
            for (int i = 0; i < 4; i++) {
                inflate(inflater, packed);
            }
            at[3] = read ? THREADS.getCurrentThreadCpuTime() : 0;
            afterInflate();
            at[4] = read ? THREADS.getCurrentThreadCpuTime() : 0;
            if (read && !usual.isFar(at[4] - at[0])) {
                synchronized (USED) {
                    for (int i = 0; i < 4; i++) {
                        USED[i] += at[i + 1] - at[i];
                    }
                }
            }
        }
    }

    private static int deflate(Deflater deflater) {
        deflater.reset();
        deflater.setInput(PLAIN);
        deflater.finish();
        return deflater.deflate(PACKED);
    }

    private static void inflate(Inflater inflater, int packed) {
        try {
            inflater.reset();
            inflater.setInput(PACKED, 0, packed);
            Control.check(inflater.inflate(UNPACKED) == PLAIN.length, "it does not unpack");
        } catch (java.util.zip.DataFormatException wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    private static void afterDeflate() {
        double sum = 0;
        for (int i = 1; i < 12_000; i++) {
            sum += (i ^ (long) sum) % 7 / 3.0;
        }
        sink = (long) sum;
    }

    private static void afterInflate() {
        long sum = 0;
        for (int round = 0; round < 2; round++) {
            for (byte b : PLAIN) {
                sum = sum * 31 + b;
            }
        }
        sink = sum;
    }
}
