package truth;

import java.util.concurrent.ThreadFactory;

/** What the programs of this folder share. The first argument of each is its way: "sick" or "well". */
final class Ward {
    private Ward() {}

    /** Tells whether the program is to have its disease. */
    static boolean sick(String[] args) {
        Control.check(args.length > 0 && (args[0].equals("sick") || args[0].equals("well")), "sick or well?");
        return args[0].equals("sick");
    }

    /** Says READY, and waits for the end. Whether a program is ill is the test's to say. */
    static void serve() {
        Control.serve((command, out) -> Control.check(false, "no such command: " + command), () -> { });
    }

    interface Work {
        void run() throws Exception;
    }

    /** Starts a daemon that does some work for ever. */
    static Thread forever(String name, Work work) {
        return start(name, () -> {
            while (true) work.run();
        });
    }

    /** Starts a daemon. */
    static Thread start(String name, Work work) {
        Thread t = new Thread(() -> {
            try {
                work.run();
            } catch (Exception wrong) {
                wrong.printStackTrace();
            }
        }, name);
        t.setDaemon(true);
        t.start();
        return t;
    }

    static ThreadFactory daemons(String prefix) {
        return new ThreadFactory() {
            private int made;

            @Override public synchronized Thread newThread(Runnable task) {
                Thread t = new Thread(task, prefix + made++);
                t.setDaemon(true);
                return t;
            }
        };
    }
}
