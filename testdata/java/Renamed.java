package truth;

import java.util.ArrayList;
import java.util.List;

/**
 * Proves: a thread's name is read as it is or not at all, also while the collector moves it.
 *
 * Threads rename themselves all the time, and make garbage; each name holds its own proof: a number, and
 * that number times 31, with something between that is longer than what the kernel keeps of it. Arguments: how many
 * threads (8).
 */
public final class Renamed {
    private Renamed() {}

    private static volatile boolean stop;
    private static volatile Throwable wrong;
    private static volatile long renamed;
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        int count = args.length > 0 ? Integer.parseInt(args[0]) : 8;
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(Renamed::run, name(i));
            thread.start();
            threads.add(thread);
        }
        Control.serve((command, out) -> {
            throw new IllegalStateException("no such command: " + command);
        }, () -> {
            stop = true;
            for (Thread thread : threads) {
                thread.join(20_000);
            }
            Control.check(wrong == null && renamed > 0, renamed + " names, " + wrong);
        });
    }

    /** At least 16 characters, 15 of which do for the kernel. */
    static String name(long n) {
        return "renamed-" + n + "-is-a-long-name-" + 31 * n;
    }

    private static void run() {
        try {
            List<byte[]> kept = new ArrayList<>();
            for (long n = Thread.currentThread().getId() * 1000; !stop; n++) {
                Thread.currentThread().setName(name(n));
                renamed++;
                for (int i = 0; i < 200; i++) {
                    byte[] garbage = new byte[2000];
                    sink = garbage;
                    if (i == 0) {
                        kept.add(garbage); // what survives for a while makes collectors move
                    }
                }
                if (kept.size() > 500) {
                    kept = new ArrayList<>();
                }
                Control.check(Thread.currentThread().getName().equals(name(n)), "another name");
                Thread.sleep(1);
            }
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }
}
