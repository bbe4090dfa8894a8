package truth;

/**
 * Allocates known amounts at four places: of all bytes 50, 25, 15 and 10 percent. The command
 * "allocated" prints how many bytes the JVM says that its threads have allocated, and "charged" for how many nanoseconds
 * they had a CPU.
 *
 * <p>Arguments: bytes a second, threads.
 *
 * <p>How large objects are differs with the JDK and the collector (compact headers, compressed references). So the
 * program asks the JVM first how much it has allocated at each place.
 */
public class Allocating {
    static volatile Object sink;

    static final int[] SHARES = {50, 25, 15, 10};

    static void bytes() { sink = new byte[1000]; }

    static void longs() { sink = new long[63]; }

    static void texts() { sink = new String[2][10]; }

    static void holders() { sink = new Holder(); }

    static final class Holder { long a, b, c, d, e, f; }

    static final com.sun.management.ThreadMXBean BEAN =
            (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();

    static void place(int number) {
        switch (number) {
            case 0: bytes(); break;
            case 1: longs(); break;
            case 2: texts(); break;
            default: holders();
        }
    }

    /** How many bytes each place allocates. The first round allocates what is only needed once. */
    static int[] sizes() {
        final int times = 1000;
        int[] sizes = new int[SHARES.length];
        long self = Thread.currentThread().getId();
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < sizes.length; i++) {
                long before = BEAN.getThreadAllocatedBytes(self);
                for (int k = 0; k < times; k++) {
                    place(i);
                }
                sizes[i] = (int) ((BEAN.getThreadAllocatedBytes(self) - before) / times);
            }
        }
        return sizes;
    }

    public static void main(String[] args) throws Exception {
        int[] sizes = sizes();
        long perSecond = Long.parseLong(args[0]);
        int threads = Integer.parseInt(args[1]);
        Worker[] workers = new Worker[threads];
        for (int i = 0; i < threads; i++) {
            workers[i] = new Worker(perSecond / threads, sizes, i);
            workers[i].start();
        }
        Thread.sleep(1000); // what is to be compiled is
        Control.serve((command, out) -> {
            boolean charged = command.equals("charged");
            Control.check(charged || command.equals("allocated"), "no such command: " + command);
            long sum = 0;
            for (Worker w : workers) {
                sum += charged ? BEAN.getThreadCpuTime(w.getId()) : BEAN.getThreadAllocatedBytes(w.getId());
            }
            out.println(sum);
        }, () -> {});
    }

    static final class Worker extends Thread {
        private final long perSecond;
        private final int[] sizes;

        Worker(long perSecond, int[] sizes, int number) {
            super("allocates-" + number);
            this.perSecond = perSecond;
            this.sizes = sizes;
            setDaemon(true);
        }

        @Override
        public void run() {
            allocate(perSecond, sizes);
        }
    }

    /** Which place comes next is drawn: a fixed order would be in step with the buffers that the JVM allocates from. */
    static void allocate(long perSecond, int[] sizes) {
        double[] upTo = new double[4];
        double all = 0;
        for (int i = 0; i < 4; i++) {
            all += (double) SHARES[i] / sizes[i];
            upTo[i] = all;
        }
        java.util.SplittableRandom random = new java.util.SplittableRandom();
        long began = System.nanoTime(), total = 0;
        while (true) {
            for (int k = 0; k < 200; k++) {
                double at = random.nextDouble() * all;
                int next = at < upTo[0] ? 0 : at < upTo[1] ? 1 : at < upTo[2] ? 2 : 3;
                place(next);
                total += sizes[next];
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
}
