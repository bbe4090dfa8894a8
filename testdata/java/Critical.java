package truth;

/**
 * Proves: stacks within JNI critical sections are whole, and a thread that is stopped there disturbs nothing.
 *
 * One thread ("critical") enters and leaves them all the time, and its sums are checked; one makes garbage,
 * so that the collector waits for it. Argument: the library of testdata/native/critical.c.
 */
public final class Critical {
    private Critical() {}

    private static native long sum(int[] values, int rounds);

    private static volatile boolean stop;
    private static volatile Throwable wrong;
    private static volatile long sums;
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        Thread critical = new Thread(Critical::run, "critical");
        critical.start();
        Thread garbage = new Thread(() -> {
            while (!stop) {
                sink = new byte[10_000];
            }
        }, "garbage");
        garbage.start();
        Control.serve((command, out) -> {
            throw new IllegalStateException("no such command: " + command);
        }, () -> {
            stop = true;
            critical.join(20_000);
            garbage.join(20_000);
            Control.check(wrong == null && sums > 0, sums + " sums, " + wrong);
        });
    }

    private static void run() {
        try {
            int[] values = new int[4096];
            for (int i = 0; i < values.length; i++) {
                values[i] = i * 31;
            }
            long first = sum(values, 50);
            while (!stop) {
                values = values.clone(); // young again
                Control.check(sum(values, 50) == first, "another sum");
                sums++;
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }
}
