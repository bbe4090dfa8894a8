import java.util.Scanner;
import java.util.concurrent.locks.LockSupport;

/**
 * Many threads that are parked, and some that work on request.
 *
 * Arguments: the number of threads, and how many of them work. Prints "ready", then obeys its standard input:
 *   r 0, r 1   these threads rest, or work again; they rest at first
 */
public final class Crowd {
    private static volatile boolean resting = true;
    private static volatile int result;

    private static void park() {
        while (true) {
            LockSupport.park();
        }
    }

    private static void work() {
        int x = 1;
        while (true) {
            for (int i = 0; i < 1_000_000; i++) {
                x = x * 31 + i;
            }
            result = x;
            while (resting) {
                LockSupport.parkNanos(5_000_000);
            }
        }
    }

    public static void main(String[] args) {
        int threads = Integer.parseInt(args[0]);
        int working = Integer.parseInt(args[1]);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(null, i < working ? Crowd::work : Crowd::park, "crowd-" + i, 192 << 10);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        Scanner in = new Scanner(System.in);
        while (in.hasNext()) {
            in.next();
            resting = in.nextLong() == 0;
        }
    }
}
