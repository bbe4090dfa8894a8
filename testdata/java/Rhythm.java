package truth;

/**
 * Allocates at four places in a fixed order: byte[4080], long[254], 51 objects of 24 bytes, char[400]. That is 50, 25,
 * 15 and 10 percent of the bytes, again and again. The places at which the JVM's buffers end walk in step with such an
 * order. With "lot" sizes and order are drawn instead.
 *
 * <p>Arguments: "turn" or "lot", bytes a second, threads. The command "allocated" prints how many bytes were allocated
 * at each of the places, in that order. How large an object is, the program asks the JVM.
 */
public class Rhythm {
    static volatile Object sink;

    static final class Small { long a; int b; }

    static void bytes(int size) { sink = new byte[size]; }

    static void longs(int size) { sink = new long[size]; }

    static void smalls(int times) {
        for (int i = 0; i < times; i++) {
            sink = new Small();
        }
    }

    static void chars(int size) { sink = new char[size]; }

    static void place(int number, int size) {
        switch (number) {
            case 0: bytes(size); break;
            case 1: longs(size); break;
            case 2: smalls(size); break;
            default: chars(size);
        }
    }

    static final int PLACES = 4;
    static final int[] SIZE = {4080, 254, 51, 400};
    static final int[] WIDTH = {1, 8, 0, 2};

    static final com.sun.management.ThreadMXBean BEAN =
            (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();

    /** How many bytes a place allocates each time. The first round allocates what is only needed once. */
    static long measured(int number, int size) {
        final int times = 1000;
        long self = Thread.currentThread().getId(), bytes = 0;
        for (int round = 0; round < 2; round++) {
            long before = BEAN.getThreadAllocatedBytes(self);
            for (int k = 0; k < times; k++) {
                place(number, size);
            }
            bytes = (BEAN.getThreadAllocatedBytes(self) - before) / times;
        }
        return bytes;
    }

    /** What a place allocates each time with its usual size. */
    static final long[] whole = new long[PLACES];

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < PLACES; i++) {
            whole[i] = measured(i, SIZE[i]);
        }
        boolean lot = args[0].equals("lot");
        Worker[] workers = new Worker[Integer.parseInt(args[2])];
        for (int i = 0; i < workers.length; i++) {
            workers[i] = new Worker(lot, Long.parseLong(args[1]) / workers.length, i);
            workers[i].start();
        }
        Thread.sleep(1000); // what is to be compiled is
        Control.serve((command, out) -> {
            Control.check(command.equals("allocated"), "no such command: " + command);
            for (int i = 0; i < PLACES; i++) {
                long sum = 0;
                for (Worker w : workers) {
                    sum += w.bytes.get(i);
                }
                out.println(sum);
            }
        }, () -> {});
    }

    static final class Worker extends Thread {
        final java.util.concurrent.atomic.AtomicLongArray bytes =
                new java.util.concurrent.atomic.AtomicLongArray(PLACES);
        private final boolean lot;
        private final long perSecond;

        Worker(boolean lot, long perSecond, int number) {
            super("rhythm-" + number);
            this.lot = lot;
            this.perSecond = perSecond;
            setDaemon(true);
        }

        @Override
        public void run() {
            java.util.SplittableRandom random = new java.util.SplittableRandom();
            long began = System.nanoTime(), total = 0;
            while (true) {
                for (int k = 0; k < 200; k++) {
                    int next = lot ? random.nextInt(PLACES) : k % PLACES;
                    total += lot ? drawn(next, random) : fixed(next);
                }
                long ahead = (long) (total * 1e9 / perSecond) - (System.nanoTime() - began);
                if (ahead > 2_000_000) {
                    try {
                        Thread.sleep(ahead / 1_000_000);
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            }
        }

        private long fixed(int next) {
            place(next, SIZE[next]);
            bytes.lazySet(next, bytes.get(next) + whole[next]);
            return whole[next];
        }

        /** Draws a size up to twice the usual one. Sizes of arrays are such that no bytes are lost to alignment. */
        private long drawn(int next, java.util.SplittableRandom random) {
            long got;
            if (next == 2) {
                int times = random.nextInt(2 * SIZE[2]);
                smalls(times);
                got = times * (whole[2] / SIZE[2]);
            } else {
                int words = random.nextInt(2 * SIZE[next] * WIDTH[next] / 8) + 1;
                int length = words * 8 / WIDTH[next];
                place(next, length);
                got = arrayBytes(next, words);
            }
            bytes.lazySet(next, bytes.get(next) + got);
            return got;
        }

        private long arrayBytes(int next, int words) {
            long gap = whole[next] - (long) SIZE[next] * WIDTH[next] / 8 * 8; // the header, as far as it counts
            return gap + words * 8L;
        }
    }
}
