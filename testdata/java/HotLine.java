package truth;

/**
 * Proves: which line of a method, and which part of its machine code, takes the time.
 *
 * A thread named "hot-line" calls work for ever. Both loops of work are one line each and do the same, the first nine times as often
 * as the second. So of the samples in work nine of ten are on the first line.
 *
 * Commands:
 *   truth   "LINE SHARE": the number of the first line, and its share
 *
 * Needs no JVM flags.
 */
public final class HotLine {
    private static final int HOT = 90_000;
    private static final int COLD = 10_000;

    private static volatile long result;
    private static volatile int line;

    private HotLine() {}

    public static void main(String[] args) throws InterruptedException {
        Thread thread = new Thread(() -> {
            for (long x = 88172645463325252L; ; ) {
                x = work(x);
                result = x;
            }
        }, "hot-line");
        thread.setDaemon(true);
        thread.start();
        while (line == 0) {
            Thread.sleep(10);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("truth"), "no such command: " + command);
            out.println(line + " " + (double) HOT / (HOT + COLD));
        }, () -> {});
    }

    static long work(long x) {
        if (line == 0) {
            line = new Throwable().getStackTrace()[0].getLineNumber() + 2;
        }
        for (int i = 0; i < HOT; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
        for (int i = 0; i < COLD; i++) { x ^= x << 13; x ^= x >>> 7; x ^= x << 17; }
        return x;
    }
}
