package truth;

/**
 * Proves: which inlined method is told to run, where one answer alone can be right.
 *
 * One thread calls down to a depth (100) of one recursive method, and at the bottom a loop, inlined into the recursive
 * method, runs for far longer than all the calls. Every stack of the loop is: work, depth + 1 times down, loop.
 *
 * The command "rounds" prints how often the bottom was reached.
 */
public final class Recursive {
    private static volatile long rounds;
    private static volatile int sink;
    private static volatile boolean wrong;

    private Recursive() {}

    public static void main(String[] args) {
        int depth = args.length > 0 ? Integer.parseInt(args[0]) : 100;
        Thread thread = new Thread(() -> loop(depth), "recursive");
        thread.setDaemon(true);
        thread.start();
        Control.serve((command, out) -> {
            Control.check(command.equals("rounds"), "no such command: " + command);
            out.println(rounds);
        }, () -> Control.check(!wrong, "a round computed something else than the first"));
    }

    private static void loop(int depth) {
        for (int i = 0; i < 20_000; i++) {
            sink = down(depth, 1); // so that all is compiled soon
        }
        int first = down(depth, 20_000);
        while (true) {
            wrong |= down(depth, 20_000) != first;
            rounds++;
        }
    }

    private static int down(int depth, int n) {
        if (depth == 0) {
            return work(n);
        }
        return down(depth - 1, n) + 1;
    }

    /** Loops that ask at each turn whether the thread should stop, for no compiler knows how often they turn. */
    private static int work(int n) {
        int x = n;
        for (int left = n; left > 0; left -= 1 + (x & 1)) {
            x = x * 31 ^ left;
        }
        for (int left = n; left > 0; left -= 1 + (x & 3)) {
            x = x * 17 + left;
        }
        for (int left = n; left > 0; left -= 1 + (x >>> 31)) {
            x = x * 13 - left;
        }
        return x;
    }
}
