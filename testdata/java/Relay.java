package truth;

import java.io.PrintStream;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * A row of queues, and threads that pass on what comes.
 *
 * "source-a" and "source-b" sleep, and put their letter into the first queue. "stage-1" takes letters out of the first
 * queue and puts them into the second, and so on. "stage-3" knows whose letter ended each of its waits. So the wakers
 * of such a wait are, in a chain: stage-2, stage-1, the letter's source, and the timer.
 *
 * "pass MILLIS" has them do that for so long. The answer is a line for each source: its name, for how many nanoseconds
 * stage-3 waited for its letters, without the time for which it had a CPU, and how many letters came.
 */
public final class Relay {
    static final int STAGES = 3;
    static final String[] SOURCES = {"source-a", "source-b"};
    static final int[] PAUSES = {17, 41}; // ms
    static final int LAST = -1; // in place of a letter

    @SuppressWarnings("unchecked")
    static final LinkedBlockingQueue<Integer>[] queues = new LinkedBlockingQueue[STAGES];

    private Relay() {}

    public static void main(String[] args) {
        for (int i = 0; i < STAGES; i++) {
            queues[i] = new LinkedBlockingQueue<>();
        }
        Control.serve(Relay::run, () -> {});
    }

    private static void run(String line, PrintStream out) throws Exception {
        String[] word = line.split(" ");
        Control.check(word[0].equals("pass"), line);
        long end = System.nanoTime() + Long.parseLong(word[1]) * 1_000_000;
        long[] waited = new long[SOURCES.length];
        int[] came = new int[SOURCES.length];
        Thread[] threads = new Thread[STAGES + SOURCES.length];
        for (int i = 0; i < STAGES; i++) {
            int at = i;
            threads[i] = started("stage-" + (i + 1), () -> pass(at, waited, came));
        }
        for (int i = 0; i < SOURCES.length; i++) {
            int letter = i;
            threads[STAGES + i] = started(SOURCES[i], () -> send(letter, end));
        }
        for (int i = threads.length; i-- > 0;) {
            if (i == STAGES - 1) {
                queues[0].put(LAST);
            }
            threads[i].join();
        }
        for (int i = 0; i < SOURCES.length; i++) {
            out.println(SOURCES[i] + " " + waited[i] + " " + came[i]);
        }
    }

    interface Work {
        void run() throws Exception;
    }

    private static Thread started(String name, Work work) {
        Thread t = new Thread(() -> {
            try {
                work.run();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }, name);
        t.setDaemon(true);
        t.start();
        return t;
    }

    static void send(int letter, long end) throws Exception {
        while (System.nanoTime() < end) {
            Thread.sleep(PAUSES[letter]);
            queues[0].put(letter);
        }
    }

    static void pass(int stage, long[] waited, int[] came) throws Exception {
        Waiting.Clocks clocks = new Waiting.Clocks();
        for (int letter = 0; letter != LAST;) {
            long before = clocks.waited - clocks.charged;
            clocks.begin();
            letter = queues[stage].take();
            clocks.end();
            if (stage + 1 < STAGES) {
                queues[stage + 1].put(letter);
            } else if (letter != LAST) {
                waited[letter] += clocks.waited - clocks.charged - before;
                came[letter]++;
            }
        }
    }
}
