import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Scanner;

/**
 * Two busy threads that do equal pieces of work, and measure the CPU time of the pieces. A piece is arithmetic, memory of
 * 256 KB a thread, virtual calls, recursion.
 *
 * Prints "ready", then obeys its standard input:
 *   w MILLISECONDS  works for that time, and prints "PIECES CPU_NS" of both threads together; each does at least one piece
 */
public final class Work extends Thread {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    interface Step {
        int of(int x);
    }

    private static final Step[] STEPS = {x -> x * 31 + 7, x -> x ^ (x >>> 3), x -> Integer.rotateLeft(x, 5) - 1};

    /** How many pieces the thread has done, and the CPU time that it had used then. */
    private static final class Mark {
        final long pieces;
        final long cpu;

        Mark(long pieces, long cpu) {
            this.pieces = pieces;
            this.cpu = cpu;
        }
    }

    private final int[] memory = new int[64 << 10];
    private volatile Mark mark = new Mark(0, 0);
    private volatile int result;

    private Work(int number) {
        super("work-" + number);
        setDaemon(true);
    }

    @Override
    public void run() {
        for (long pieces = 1;; pieces++) {
            result = piece(result);
            mark = new Mark(pieces, THREADS.getCurrentThreadCpuTime());
        }
    }

    /** Some milliseconds. */
    private int piece(int x) {
        for (int round = 0; round < 3; round++) {
            x = descend(24, x);
        }
        return x;
    }

    private int descend(int depth, int x) {
        if (depth > 0) {
            return descend(depth - 1, x + depth) ^ depth;
        }
        for (int i = 0; i < memory.length; i++) {
            x = STEPS[(x & 0x7fffffff) % STEPS.length].of(x);
            memory[i] += x;
        }
        return x;
    }

    public static void main(String[] args) throws Exception {
        Work[] workers = {new Work(1), new Work(2)};
        for (Work w : workers) {
            w.start();
        }
        System.out.println("ready");
        Scanner in = new Scanner(System.in);
        while (in.hasNext()) {
            in.next();
            long ms = in.nextLong();
            Mark[] before = new Mark[workers.length];
            for (int i = 0; i < workers.length; i++) {
                before[i] = workers[i].mark;
            }
            Thread.sleep(ms);
            long pieces = 0;
            long cpu = 0;
            for (int i = 0; i < workers.length; i++) {
                while (workers[i].mark == before[i]) {
                    Thread.sleep(1); // it has had no CPU for so long
                }
                Mark after = workers[i].mark;
                pieces += after.pieces - before[i].pieces;
                cpu += after.cpu - before[i].cpu;
            }
            System.out.println(pieces + " " + cpu);
        }
    }
}
