package truth;

import java.io.PrintStream;

/**
 * Proves: every kind of frame is walked to its root, with the right names and lines.
 *
 * The threads of Parked stand still; "stacks" prints where the JVM itself says they are, and a test
 * compares frame by frame:
 *
 *   THREAD name parked
 *   java.util.concurrent.locks.LockSupport.park:211         class.method:line, from the top down,
 *   jdk.internal.misc.Unsafe.park:native                    "native" for native methods, 0 if unknown
 *
 * The threads of Spinning run for ever, each in a loop of its own shape; of them only the callers of
 * the loop are known ("*" for a line), and every stack must end with them:
 *
 *   THREAD name spinning
 *   truth.Spinning.spinCrc32:*
 *
 * Before it prints, the program checks what the JVM says against the calls that the source makes.
 *
 * Meant to be started with jvmtest.KindsFlags: compilation in the foreground, so that a kind is what
 * its name says; Gate.pass not inlined; interpreted* not compiled; hidden frames shown.
 * Arguments: "parked" or "spinning" starts only those; "spinning 1 3" only every third of them, from the second on.
 */
public final class Kinds {
    private Kinds() {}

    public static void main(String[] args) throws Exception {
        String only = args.length > 0 ? args[0] : "";
        Parked[] parked = only.equals("spinning") ? new Parked[0] : Parked.all();
        // One after the other: what one kind needs compiled does not disturb the next.
        for (Parked kind : parked) {
            kind.thread.start();
            awaitStandingStill(kind);
        }
        Parked.invalidate();
        int first = args.length > 2 ? Integer.parseInt(args[1]) : 0;
        int step = args.length > 2 ? Integer.parseInt(args[2]) : 1;
        Spinning[] spinning = only.equals("parked") ? new Spinning[0] : everyOf(Spinning.all(), first, step);
        for (Spinning kind : spinning) {
            kind.thread.start();
        }
        for (Spinning kind : spinning) {
            kind.awaitRounds(2);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("stacks"), "no such command: " + command);
            printParked(parked, out);
            printSpinning(spinning, out);
        }, () -> {
            for (Parked kind : parked) {
                checkChain(kind, kind.thread.getStackTrace());
                kind.verify();
            }
            for (Spinning kind : spinning) {
                kind.verify();
            }
        });
    }

    private static Spinning[] everyOf(Spinning[] all, int first, int step) {
        Spinning[] some = new Spinning[(all.length - first + step - 1) / step];
        for (int i = 0; i < some.length; i++) {
            some[i] = all[first + i * step];
        }
        return some;
    }

    private static void awaitStandingStill(Parked kind) throws InterruptedException {
        long deadline = System.nanoTime() + 120_000_000_000L;
        while (!kind.standsStill()) {
            Control.check(System.nanoTime() < deadline, kind.name + " never arrived");
            Thread.sleep(2);
        }
    }

    private static void printParked(Parked[] kinds, PrintStream out) {
        for (Parked kind : kinds) {
            StackTraceElement[] stack = kind.thread.getStackTrace();
            checkChain(kind, stack);
            out.println("THREAD " + kind.name + " parked");
            for (StackTraceElement frame : stack) {
                String line = frame.isNativeMethod() ? "native" : String.valueOf(Math.max(0, frame.getLineNumber()));
                out.println(frame.getClassName() + "." + frame.getMethodName() + ":" + line);
            }
        }
    }

    private static void printSpinning(Spinning[] kinds, PrintStream out) {
        for (Spinning kind : kinds) {
            out.println("THREAD " + kind.name + " spinning");
            out.println("truth.Spinning." + kind.method + ":*");
            out.println("truth.Spinning.run:*");
            out.println("java.lang.Thread.run:*");
        }
    }

    /** The methods that the source calls stand on the stack, in that order. */
    private static void checkChain(Parked kind, StackTraceElement[] stack) {
        int at = 0;
        for (String method : kind.chain) {
            while (at < stack.length && !stack[at].getMethodName().startsWith(method)) {
                at++;
            }
            Control.check(at < stack.length, kind.name + ": " + method + " is not on the stack");
            at++;
        }
    }
}
