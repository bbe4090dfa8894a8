package truth;

/**
 * Proves: a stack of any depth is whole, or ends where --depth says.
 *
 * A thread goes as many calls deep as it is told and runs there, always in this file: below it are "down" so many times
 * and once more, and "run". "wideDown" does the same with larger frames.
 * Commands: "down N" and "wideDown N" go N calls deep, from wherever it was.
 */
public final class Deep implements Runnable {
    private static volatile int wanted;
    private static volatile boolean wide;
    private static volatile int orders;
    private static volatile int obeyed;
    /** Of the thread that obeys. */
    private static int order;
    private static volatile boolean stop;
    private static volatile Throwable wrong;

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(new Deep(), "deep");
        thread.setDaemon(true);
        thread.start();
        Control.serve((command, out) -> {
            String[] words = command.split(" ");
            Control.check(words.length == 2 && words[0].matches("down|wideDown"), "no such command: " + command);
            wide = words[0].equals("wideDown");
            wanted = Integer.parseInt(words[1]);
            int order = ++orders;
            while (obeyed != order) {
                Control.check(wrong == null, String.valueOf(wrong));
                Thread.sleep(1);
            }
        }, () -> {
            stop = true;
            thread.join(60_000);
            Control.check(!thread.isAlive(), "the thread hangs");
            Control.check(wrong == null, String.valueOf(wrong));
        });
    }

    @Override
    public void run() {
        try {
            while (!stop) {
                order = orders; // before what it orders
                int depth = wanted;
                long reached = wide ? wideDown(depth, 1, 2, 3, 4, 5, 6, 7, 8, 9) : down(depth);
                Control.check(reached == depth, depth + " calls were " + reached);
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }

    private static long down(int calls) {
        if (calls == 0) {
            return bottom();
        }
        return down(calls - 1) + 1;
    }

    /** What it keeps over the call is needed behind it, so that each compiled frame has room for it, too. */
    private static long wideDown(int calls, long a, long b, long c, long d, long e, long f, long g, long h, long i) {
        if (calls == 0) {
            return bottom();
        }
        long j = a * 3, k = b * 5, l = c * 7, m = d * 11, n = e * 13, o = f * 17, p = g * 19, q = h * 23, r = i * 29;
        long deeper = wideDown(calls - 1, b, c, d, e, f, g, h, i, a);
        Control.check(j / 3 == a && k / 5 == b && l / 7 == c && m / 11 == d && n / 13 == e && o / 17 == f
                && p / 19 == g && q / 23 == h && r / 29 == i, "a local variable has changed");
        return deeper + 1;
    }

    private static long bottom() {
        obeyed = order;
        long spins = 0;
        while (orders == order && !stop) {
            spins++;
        }
        return spins >>> 63;
    }
}
