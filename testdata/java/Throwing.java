package truth;

import static truth.ShadowStack.__LINE__;

/**
 * Proves: the stack is right while an exception goes through methods that are interpreted and compiled
 * in turns (with -XX:CompileCommand=exclude,truth/Throwing.interpreted).
 *
 * Argument: FILE of the shadow (ShadowStack). The command "thrown" prints how many exceptions were.
 */
public final class Throwing implements Runnable {
    private static final int LEVELS = 20;
    /** Exceptions before the program says that it is ready: what is to be compiled is. */
    private static final int WARM = 3_000;

    private final ShadowStack s;
    private volatile long thrown;
    private volatile boolean stop;
    private volatile Throwable wrong;

    private Throwing(ShadowStack s) {
        this.s = s;
    }

    public static void main(String[] args) throws Exception {
        Throwing throwing = new Throwing(ShadowStack.create(args[0], 1)[0]);
        ShadowStack.writeIds(args[0]);
        Thread thread = new Thread(throwing, "throwing");
        thread.setDaemon(true);
        thread.start();
        while (throwing.thrown < WARM) {
            Control.check(throwing.wrong == null, String.valueOf(throwing.wrong));
            Thread.sleep(2);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("thrown"), "no such command: " + command);
            out.println(throwing.thrown);
        }, () -> {
            throwing.stop = true;
            thread.join(60_000);
            Control.check(!thread.isAlive(), thread + " hangs");
            if (throwing.wrong != null) {
                throw new IllegalStateException(throwing.wrong);
            }
        });
    }

    private static final int RUN = ShadowStack.id("truth.Throwing.run");

    @Override
    public void run() {
        try {
            s.begin();
            s.push(RUN);
            while (!stop) {
                int levels = (int) (thrown % LEVELS);
                try {
                    s.at(__LINE__); compiled(levels);
                    throw new IllegalStateException("nothing was thrown");
                } catch (Thrown caught) {
                    Control.check(caught.levels == levels && s.depth() == 1, "the shadow is off by " + (s.depth() - 1));
                }
                thrown++;
            }
            s.pop();
        } catch (Throwable other) {
            wrong = other;
        } finally {
            s.end();
        }
    }

    private static final int COMPILED = ShadowStack.id("truth.Throwing.compiled");

    private int compiled(int levels) {
        s.push(COMPILED);
        try {
            s.at(__LINE__); return interpreted(levels) + 1;
        } finally {
            s.pop();
        }
    }

    private static final int INTERPRETED = ShadowStack.id("truth.Throwing.interpreted");

    private int interpreted(int levels) {
        s.push(INTERPRETED);
        try {
            if (levels == 0) {
                throw new Thrown(s.depth() / 2 - 1);
            }
            s.at(__LINE__); return compiled(levels - 1) + 1;
        } finally {
            s.pop();
        }
    }

    private static final class Thrown extends RuntimeException {
        private static final long serialVersionUID = 1;
        private final int levels;

        Thrown(int levels) {
            super(null, null, false, false);
            this.levels = levels;
        }
    }
}
