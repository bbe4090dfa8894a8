package truth;

/**
 * Proves: code that a native library has made while it runs, in memory of no file and without unwind information, costs
 * its own frames only. The Java methods that called it are on the stack, and so are functions of files that it calls.
 *
 * One thread spins in such code ("spinning"), another one in C that such code has called ("calling").
 * Argument: the library of testdata/native/madecode.c.
 */
public final class MadeCode {
    private MadeCode() {}

    private static volatile boolean stop;

    private static native void make();

    private static native long spin(long n);

    private static native long callBack(long n);

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        make();
        Thread spinning = new Thread(MadeCode::spins, "spinning");
        Thread calling = new Thread(MadeCode::calls, "calling");
        spinning.start();
        calling.start();
        Control.serve((command, out) -> {
            throw new IllegalStateException("no such command: " + command);
        }, () -> {
            stop = true;
            spinning.join(20_000);
            calling.join(20_000);
        });
    }

    private static void spins() {
        while (!stop) {
            spin(5_000_000);
        }
    }

    private static void calls() {
        while (!stop) {
            callBack(5_000_000);
        }
    }
}
