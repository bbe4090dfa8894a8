package truth;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Proves: threads that compute for microseconds and then block are sampled where they compute.
 *
 * Pairs of threads compute some 50 us and hand over, in one of several ways. What share of a thread's CPU time handing
 * over takes, the thread measures by its own CPU clock, in one of some 16 rounds, drawn by chance: reading the clock in each would
 * be most of what there is to see.
 *
 * Arguments: way (queue, yield, lock, park, mix), pairs (4), seed (1). Commands:
 *   mark     start counting anew
 *   truth    one line of JSON: {"share":0.09,"rounds":N,"cpu_ns":N}
 */
public final class HandOver {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final String[] WAYS = {"queue", "yield", "lock", "park"};
    private static final List<HandOver> ALL = new ArrayList<>();

    private final SynchronousQueue<Integer> queue;
    private final ReentrantLock lock;
    private final Condition turned;
    private final int[] turn;
    private final int side;
    private final Random random;
    private final String way;
    private final Usual usual = new Usual();
    private static volatile boolean stop;
    private volatile long sink;

    // Since the last mark.
    private long computing;
    private long handing;
    private long measured;

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
            start(left, "hand-" + i + "-left");
            start(new HandOver(left, of, 1, seed + 2 * i + 1), "hand-" + i + "-right");
        }
        Thread.sleep(3000); // until the code is compiled
        Control.serve((command, out) -> {
            switch (command) {
                case "mark":
                    ALL.forEach(HandOver::mark);
                    break;
                case "truth":
                    out.println(truth());
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
                if (random.nextInt(16) == 0) {
                    measuredRound();
                } else {
                    compute();
                    handOver();
                }
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** One round with the thread's CPU clock read around its parts. What a reading costs is taken off. */
    private void measuredRound() throws InterruptedException {
        long begin = THREADS.getCurrentThreadCpuTime();
        long again = THREADS.getCurrentThreadCpuTime();
        compute();
        long between = THREADS.getCurrentThreadCpuTime();
        handOver();
        long end = THREADS.getCurrentThreadCpuTime();
        long cost = again - begin;
        count(between - again - cost, end - between - cost);
    }

    private synchronized void count(long compute, long hand) {
        if (usual.isFar(compute + hand)) {
            return;
        }
        measured++;
        computing += compute;
        handing += hand;
    }

    private synchronized void mark() {
        measured = 0;
        computing = 0;
        handing = 0;
    }

    private void compute() {
        long x = sink + 1;
        for (int i = random.nextInt(8000) + 12000; i > 0; i--) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        sink = x;
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
            default:
                LockSupport.parkNanos(20_000);
        }
    }

    private static String truth() {
        long computing = 0;
        long handing = 0;
        long measured = 0;
        for (HandOver one : ALL) {
            synchronized (one) {
                computing += one.computing;
                handing += one.handing;
                measured += one.measured;
            }
        }
        double share = handing / (double) Math.max(1, computing + handing);
        return "{\"share\":" + share + ",\"rounds\":" + measured + ",\"cpu_ns\":" + (computing + handing) + "}";
    }
}
