package truth;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Proves: threads that compute for microseconds and then block are sampled where they compute.
 *
 * Pairs of threads compute some 50 us and hand over, in one of several ways. What share of a thread's CPU time handing
 * over takes, the thread knows by its own CPU clock. It reads the clock around many rounds, and knows how many steps
 * it computed in them. What a step takes it measures apart. What is left of the rounds is handing over.
 *
 * No clock is read next to handing over. Such a reading comes when the caches are cold, and takes up to some us more
 * than two readings one behind the other tell. It would count as handing over (docs/evidence/accuracy.md).
 *
 * Arguments: way (queue, yield, lock, park, mix, nothing), pairs (4), seed (1). What the truth says of nothing is the error
 * of the truth. With one pair and two CPUs a yield comes back at once. Threads are called hand-WAY-PAIR-SIDE. Samples
 * within rounds() belong to what is measured. Commands:
 *   mark     start counting anew
 *   truth    one line of JSON for each way: {"way":"lock","share":0.09,"rounds":N,"cpu_ns":N,"far":N}
 */
public final class HandOver {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final String[] WAYS = {"queue", "yield", "lock", "park"};
    /** Rounds between two measurements, on the average. */
    private static final int ROUNDS = 32;
    private static final List<HandOver> ALL = new ArrayList<>();

    private final SynchronousQueue<Integer> queue;
    private final ReentrantLock lock;
    private final Condition turned;
    private final int[] turn;
    private final int side;
    private final Random random;
    private final String way;
    private final Usual usual = new Usual();
    private final Usual usualRounds = new Usual();
    private static volatile boolean stop;
    private volatile long sink;

    // Since the last mark.
    private Sums sums = new Sums();

    private HandOver(HandOver other, String way, int side, long seed) {
        this.way = way;
        this.side = side;
        random = new Random(seed);
        queue = other == null ? new SynchronousQueue<>() : other.queue;
        lock = other == null ? new ReentrantLock() : other.lock;
        turned = other == null ? lock.newCondition() : other.turned;
        turn = other == null ? new int[1] : other.turn;
    }

    public static void main(String[] args) throws Exception {
        String way = args.length > 0 ? args[0] : "queue";
        int pairs = args.length > 1 ? Integer.parseInt(args[1]) : 4;
        long seed = args.length > 2 ? Long.parseLong(args[2]) : 1;
        for (int i = 0; i < pairs; i++) {
            String of = way.equals("mix") ? WAYS[i % WAYS.length] : way;
            HandOver left = new HandOver(null, of, 0, seed + 2 * i);
            start(left, "hand-" + of + "-" + i + "-left");
            start(new HandOver(left, of, 1, seed + 2 * i + 1), "hand-" + of + "-" + i + "-right");
        }
        Thread.sleep(3000); // until the code is compiled
        Control.serve((command, out) -> {
            switch (command) {
                case "mark":
                    ALL.forEach(HandOver::mark);
                    break;
                case "truth":
                    truth().forEach(out::println);
                    break;
                default:
                    throw new IllegalArgumentException("no such command: " + command);
            }
        }, () -> stop = true);
    }

    private static void start(HandOver one, String name) {
        ALL.add(one);
        Thread thread = new Thread(one::work, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void work() {
        try {
            while (!stop) {
                int count = ROUNDS / 2 + random.nextInt(ROUNDS);
                long begin = THREADS.getCurrentThreadCpuTime();
                long steps = rounds(count);
                long end = THREADS.getCurrentThreadCpuTime();
                measure(count, steps, end - begin);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** So many rounds, in which no clock is read. Returns the steps computed. */
    private long rounds(int count) throws InterruptedException {
        long steps = 0;
        for (int i = 0; i < count; i++) {
            steps += compute();
            handOver();
        }
        return steps;
    }

    /** Measures what steps take, and counts the rounds before. What a reading of the clock costs is taken off. */
    private void measure(int count, long steps, long took) {
        THREADS.getCurrentThreadCpuTime(); // so that the next one costs as much as the last
        long begin = THREADS.getCurrentThreadCpuTime();
        int computed = compute();
        long between = THREADS.getCurrentThreadCpuTime();
        long end = THREADS.getCurrentThreadCpuTime();
        long cost = end - between;
        synchronized (this) {
            long computing = between - begin - cost;
            sums.measured(computed, computing, usual.isFar(computing));
            sums.rounds(count, steps, took - cost, usualRounds.isFar(took - cost, count));
        }
    }

    private synchronized void mark() {
        sums = new Sums();
    }

    /** Computes, and returns in how many steps. */
    private int compute() {
        long x = sink + 1;
        int steps = random.nextInt(8000) + 12000;
        for (int i = steps; i > 0; i--) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        sink = x;
        return steps;
    }

    private void handOver() throws InterruptedException {
        switch (way) {
            case "queue":
                if (side == 0) {
                    queue.put(1);
                } else {
                    queue.take();
                }
                break;
            case "yield":
                Thread.yield();
                break;
            case "lock":
                lock.lock();
                try {
                    turn[0] = 1 - side;
                    turned.signal();
                    while (turn[0] != side) {
                        turned.await();
                    }
                } finally {
                    lock.unlock();
                }
                break;
            case "nothing":
                break;
            default:
                LockSupport.parkNanos(20_000);
        }
    }

    private static Iterable<String> truth() {
        Map<String, Sums> ways = new TreeMap<>();
        for (HandOver one : ALL) {
            synchronized (one) {
                ways.computeIfAbsent(one.way, way -> new Sums()).add(one.sums);
            }
        }
        List<String> lines = new ArrayList<>();
        ways.forEach((way, sums) -> lines.add("{\"way\":\"" + way + "\"," + sums + "}"));
        return lines;
    }

    /** What was counted. */
    private static final class Sums {
        private long measured; // steps
        private long measuredNanos; // that these took
        private long rounds;
        private long steps; // in rounds
        private long nanos; // that rounds took
        private long computing; // of nanos; only where several threads are summed up
        private long far; // measurements that do not count

        void measured(int steps, long nanos, boolean isFar) {
            if (isFar) {
                far++;
                return;
            }
            measured += steps;
            measuredNanos += nanos;
        }

        void rounds(int count, long steps, long nanos, boolean isFar) {
            if (isFar) {
                far++;
                return;
            }
            rounds += count;
            this.steps += steps;
            this.nanos += nanos;
        }

        /** Adds those of a thread. What a step takes is that thread's own. */
        void add(Sums of) {
            rounds += of.rounds;
            nanos += of.nanos;
            computing += (long) ((double) of.steps * of.measuredNanos / Math.max(1, of.measured));
            far += of.far;
        }

        @Override
        public String toString() {
            double share = (nanos - computing) / (double) Math.max(1, nanos);
            return "\"share\":" + share + ",\"rounds\":" + rounds + ",\"cpu_ns\":" + nanos + ",\"far\":" + far;
        }
    }
}
