package truth;

/**
 * Allocates known amounts at four places: of all bytes 50, 25, 15 and 10 percent. The command
 * "allocated" prints how many bytes the JVM says that its threads have allocated.
 *
 * <p>Arguments: bytes a second, threads.
 *
 * <p>The sizes are those of 64-bit HotSpot with compressed class pointers: an array's head is 16 bytes.
 */
public class Allocating {
    static volatile Object sink;

    static final int[] SHARES = {50, 25, 15, 10};

    static void bytes() { sink = new byte[1000]; } // 1016

    static void longs() { sink = new long[63]; } // 520

    static void texts() { sink = new String[2][10]; } // two levels: 24 + 2 * 56

    static void holders() { sink = new Holder(); } // 64

    static final class Holder { long a, b, c, d, e, f; } // 12 + 4 + 48: 64

    public static void main(String[] args) throws Exception {
        long perSecond = Long.parseLong(args[0]);
        int threads = Integer.parseInt(args[1]);
        Worker[] workers = new Worker[threads];
        for (int i = 0; i < threads; i++) {
            workers[i] = new Worker(perSecond / threads, i);
            workers[i].start();
        }
        com.sun.management.ThreadMXBean bean =
                (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        Thread.sleep(1000); // what is to be compiled is
        Control.serve((command, out) -> {
            Control.check(command.equals("allocated"), "no such command: " + command);
            long sum = 0;
            for (Worker w : workers) {
                sum += bean.getThreadAllocatedBytes(w.getId());
            }
            out.println(sum);
        }, () -> {});
    }

    static final class Worker extends Thread {
        private final long perSecond;

        Worker(long perSecond, int number) {
            super("allocates-" + number);
            this.perSecond = perSecond;
            setDaemon(true);
        }

        @Override
        public void run() {
            allocate(perSecond);
        }
    }

    /** Which place comes next is drawn: a fixed order would be in step with the buffers that the JVM allocates from. */
    static void allocate(long perSecond) {
        int[] sizes = {1016, 520, 136, 64};
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
                switch (next) {
                    case 0: bytes(); break;
                    case 1: longs(); break;
                    case 2: texts(); break;
                    default: holders();
                }
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
