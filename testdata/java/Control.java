package truth;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;

/**
 * How a test talks with the program that it started.
 *
 * The program prints READY once it is in the state that it promises. From then on each line on stdin
 * is a command; its answer is any number of lines, ended by OK, or by "FAIL reason". The command
 * "quit", and the end of stdin, end the program: it verifies its own results, and its exit status is
 * 0 only if they are right. So a program whose test has died ends, too.
 */
final class Control {
    /** What a program does with a command; it throws if something is wrong. */
    interface Commands {
        void run(String command, PrintStream out) throws Exception;
    }

    /** The program's check of its own results; it throws if they are wrong. */
    interface Verify {
        void run() throws Exception;
    }

    private Control() {}

    /** Serves commands until quit, then verifies and ends the JVM. */
    static void serve(Commands commands, Verify verify) {
        PrintStream out = System.out;
        out.println("READY");
        out.flush();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = next(in); line != null && !line.equals("quit"); line = next(in)) {
            String command = line;
            answer(out, () -> commands.run(command, out));
        }
        boolean right = answer(out, verify);
        // halt, not exit: threads of a test program stand wherever the test wants them to.
        Runtime.getRuntime().halt(right ? 0 : 1);
    }

    private static boolean answer(PrintStream out, Verify work) {
        String end = "OK";
        try {
            work.run();
        } catch (Throwable wrong) {
            wrong.printStackTrace();
            end = ("FAIL " + wrong).replace('\n', ' ');
        }
        out.println(end);
        out.flush();
        return end.equals("OK");
    }

    private static String next(BufferedReader in) {
        try {
            return in.readLine();
        } catch (IOException gone) {
            return null;
        }
    }

    static void check(boolean right, String what) {
        if (!right) {
            throw new IllegalStateException(what);
        }
    }
}
