package truth;

import java.util.Random;

/**
 * A table that is read all over, all the time.
 * Sick: it is larger than the memory that the process may use, so that most of it is in swap. The test says when it may
 * grow, after it has set that bound.
 * Well: there is room for all of it.
 */
public final class Swaps {
    private static final int ROWS = 4096, ROW = 1 << 16, PAGE = 1 << 12;
    static volatile long sum;

    public static void main(String[] args) {
        if (!Ward.sick(args)) {
            read(ROWS / 16);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("grow"), "no such command: " + command);
            read(ROWS);
        }, () -> { });
    }

    private static void read(int rows) {
        byte[][] table = new byte[rows][];
        for (int i = 0; i < rows; i++) {
            table[i] = new byte[ROW];
        }
        Random random = new Random(1);
        Ward.forever("reader", () -> {
            for (int i = 0; i < 50; i++) {
                sum += table[random.nextInt(rows)][random.nextInt(ROW / PAGE) * PAGE]++;
            }
            Thread.sleep(2);
        });
    }
}
