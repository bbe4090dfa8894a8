import java.util.Scanner;

/**
 * A heap that is full of small objects, and a thread that looks at the clock.
 *
 * Argument: megabytes. Prints "ready", then obeys its standard input:
 *   g   prints the longest gap between two readings of the clock since the last g, in ns
 */
public final class Fill {
    private static volatile long longest;

    private static void look() {
        for (long last = System.nanoTime(); ; ) {
            long now = System.nanoTime();
            if (now - last > longest) {
                longest = now - last;
            }
            last = now;
        }
    }

    public static void main(String[] args) {
        int objects = Integer.parseInt(args[0]) << 10;
        Object[][] kept = new Object[objects >> 10][];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new Object[1 << 10];
            for (int k = 0; k < 1 << 10; k++) { // about a kilobyte each
                kept[i][k] = new Object[] {new long[8], new byte[400], "x" + i + k, Integer.valueOf(i), new int[70]};
            }
        }
        System.gc();
        Thread thread = new Thread(Fill::look, "clock");
        thread.setDaemon(true);
        thread.start();
        System.out.println("ready");
        for (Scanner in = new Scanner(System.in); in.hasNext(); in.next()) {
            System.out.println(longest);
            longest = 0;
        }
        if (kept[0] == null) {
            throw new AssertionError();
        }
    }
}
