package truth;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Random;
import java.util.zip.CRC32;

/**
 * Proves: a comparison of two recordings finds a method that was made slower, and nothing else.
 *
 * A thread serves requests of random sizes. Each is parsed, priced, stored and rendered, by methods of these names; what
 * the thread does in between is "other". Its CPU time is read around each part: the sums are the truth. No part makes
 * objects: what a collector does with those changes from minute to minute, and then the program is not the same twice.
 *
 * Arguments: by how much slower price is, in percent of the CPU time of a whole request (0). Commands:
 *   slower N   price is N percent of a request slower from now on
 *   plain      price is as it was before that, until "again"
 *   again      price is as slow as the last "slower" made it
 *   mark       start counting anew
 *   truth      one line of JSON: {"cpu_ns":N,"requests":N,"parse":0.25,"price":0.2,"store":0.3,"render":0.2,"other":0.05}
 *
 * Needs no JVM flags.
 */
public final class Canary {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final String[] PARTS = {"parse", "price", "store", "render"};
    private static final int PARSE = 0, PRICE = 1, STORE = 2, RENDER = 3;

    /** How often each part does its piece of work for a request of mean size. */
    private static final int[] PIECES = {60, 17, 300, 100};

    private static final String[] ARTICLES = new String[128];

    static {
        for (int i = 0; i < ARTICLES.length; i++) {
            ARTICLES[i] = "article-" + i;
        }
    }

    private final Random random = new Random(1);
    private final int[] keys = new int[512];
    private final long[] stock = new long[512];
    private final char[] page = new char[4096];
    private final CRC32 crc = new CRC32();
    private final byte[] text = Spinning.bytes(4096);
    private volatile boolean stop;
    private volatile boolean warm;
    private volatile Throwable wrong;
    /** How many pieces price does more, in thousandths of its own. */
    private volatile int slower;
    /** What "slower" found. */
    private volatile int found;
    private long kept;

    // The sums since the last mark; read by another thread, hence synchronized.
    private final long[] nanos = new long[PARTS.length];
    private long requests;
    private long cpuAtMark;
    private long cpuNow;

    public static void main(String[] args) throws Exception {
        Canary canary = new Canary();
        Thread thread = new Thread(canary::work, "canary");
        thread.setDaemon(true);
        thread.start();
        while (!canary.warm) {
            Control.check(canary.wrong == null, String.valueOf(canary.wrong));
            Thread.sleep(5);
        }
        canary.slow(args.length > 0 ? Double.parseDouble(args[0]) : 0);
        Control.serve((command, out) -> {
            if (command.startsWith("slower ")) {
                canary.slow(Double.parseDouble(command.substring(7)));
            } else if (command.equals("plain")) {
                canary.slower = 0;
            } else if (command.equals("again")) {
                canary.slower = canary.found;
            } else if (command.equals("mark")) {
                canary.mark();
            } else if (command.equals("truth")) {
                out.println(canary.truth());
            } else {
                throw new IllegalArgumentException("no such command: " + command);
            }
        }, () -> {
            canary.stop = true;
            thread.join(20_000);
            Control.check(!thread.isAlive(), thread + " hangs");
            Control.check(canary.wrong == null, String.valueOf(canary.wrong));
        });
    }

    /**
     * Makes price slower by so many percent of the CPU time of a whole request as it was. Not all of price's time grows with
     * its pieces, so what a first guess gave is measured, and the guess mended.
     */
    private void slow(double percent) throws InterruptedException {
        double before = share();
        slower = (int) Math.round(1000 * percent / 100 / Math.max(before, 0.01));
        for (int i = 0; i < 2 && slower > 0; i++) {
            mark();
            Thread.sleep(1000);
            double now = share();
            double took = (now - before) / (1 - now);
            slower = (int) Math.round(slower * Math.min(Math.max(percent / 100 / Math.max(took, 0.001), 0.7), 1.5));
        }
        found = slower;
    }

    /** What price has of all CPU time since the last mark. */
    private synchronized double share() {
        return nanos[PRICE] / (double) Math.max(1, cpuNow - cpuAtMark);
    }

    private void work() {
        try {
            work(5_000_000_000L); // by then all is compiled
            mark();
            work(500_000_000L);
            warm = true;
            while (!stop) {
                request();
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }

    /** Works for so many nanoseconds of CPU time. */
    private void work(long nanos) {
        long end = THREADS.getCurrentThreadCpuTime() + nanos;
        while (THREADS.getCurrentThreadCpuTime() < end) {
            request();
        }
    }

    /** Requests are between half and one and a half times as large as others. */
    private void request() {
        double size = 0.5 + random.nextDouble();
        long at = THREADS.getCurrentThreadCpuTime();
        long sum = 0;
        for (int part = 0; part < PARTS.length; part++) {
            int pieces = Math.max(1, (int) (PIECES[part] * size));
            switch (part) {
                case PARSE: sum += parse(pieces); break;
                case PRICE: sum += price((int) (pieces * (1 + slower / 1000.0) + random.nextDouble())); break;
                case STORE: sum += store(pieces); break;
                default: sum += render(pieces); break;
            }
            long now = THREADS.getCurrentThreadCpuTime();
            count(part, at, now);
            at = now;
        }
        kept += sum;
    }

    private synchronized void count(int part, long before, long after) {
        if (cpuAtMark == 0) {
            cpuAtMark = before;
        }
        nanos[part] += after - before;
        cpuNow = after;
        if (part == RENDER) {
            requests++;
        }
    }

    private synchronized void mark() {
        java.util.Arrays.fill(nanos, 0);
        requests = 0;
        cpuAtMark = 0;
        cpuNow = 0;
    }

    private synchronized String truth() {
        double all = Math.max(1, cpuNow - cpuAtMark);
        StringBuilder json = new StringBuilder("{\"cpu_ns\":" + (cpuNow - cpuAtMark) + ",\"requests\":" + requests);
        double rest = 1;
        for (int part = 0; part < PARTS.length; part++) {
            rest -= nanos[part] / all;
            json.append(",\"").append(PARTS[part]).append("\":").append(nanos[part] / all);
        }
        return json.append(",\"other\":").append(rest).append('}').toString();
    }

    // The parts. Each is a method with callees, some of which the compiler inlines.

    private long parse(int pieces) {
        long sum = 0;
        for (int i = 0; i < pieces; i++) {
            crc.reset();
            crc.update(text, i & 63, 512);
            sum += token(i) + crc.getValue();
        }
        return sum;
    }

    private int token(int from) {
        int words = 0;
        for (int i = from & 255; i < 600; i++) {
            if ((text[i] & 15) == 0) {
                words++;
            }
        }
        return words;
    }

    private long price(int pieces) {
        long sum = 0;
        for (int i = 0; i < pieces; i++) {
            sum += discount(tax(1000 + i));
        }
        return sum;
    }

    private static long tax(long cents) {
        long sum = cents;
        for (int rate = 1; rate < 40; rate++) {
            sum += sum % (rate + 7);
        }
        return sum;
    }

    private static long discount(long cents) {
        long sum = cents;
        for (int step = 1; step < 30; step++) {
            sum -= sum / (step + 11) & 15;
        }
        return sum;
    }

    private long store(int pieces) {
        long sum = 0;
        for (int i = 0; i < pieces; i++) {
            int at = slot(ARTICLES[i & 127].hashCode());
            sum += stock[at];
            stock[at] = sum & 63;
        }
        return sum;
    }

    /** The place of a key in a table of open addresses. */
    private int slot(int key) {
        int at = key * 0x9E3779B9 >>> 23;
        while (keys[at] != key && keys[at] != 0) {
            at = at + 1 & 511;
        }
        keys[at] = key;
        return at;
    }

    private long render(int pieces) {
        int at = 0;
        for (int i = 0; i < pieces; i++) {
            at = put("<td>", at);
            at = digits(i * 7919L, at);
            at = put("</td>", at) & 2047;
        }
        long sum = 0;
        for (int i = 0; i < at; i++) {
            sum = 31 * sum + page[i];
        }
        return sum;
    }

    private int put(String text, int at) {
        for (int i = 0; i < text.length(); i++) {
            page[at++] = text.charAt(i);
        }
        return at;
    }

    private int digits(long number, int at) {
        do {
            page[at++] = (char) ('0' + number % 10);
            number /= 10;
        } while (number != 0);
        return at;
    }
}
