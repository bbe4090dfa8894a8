package truth;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Two threads that never rest, one deep in calls and one not: a sampler that loses samples must lose as many of the one as
 * of the other.
 *
 * The command "cpu" prints how much CPU time "shallow" and "deep" have used, in nanoseconds.
 * Argument: how many calls deep the one is.
 */
public final class TwoDepths {
    private static volatile boolean stop;
    private static volatile long sink;

    private TwoDepths() {}

    public static void main(String[] args) throws Exception {
        int calls = Integer.parseInt(args[0]);
        Thread shallow = start("shallow", 0);
        Thread deep = start("deep", calls);
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Control.serve((command, out) -> {
            Control.check(command.equals("cpu"), "no such command: " + command);
            out.println(threads.getThreadCpuTime(shallow.getId()) + " " + threads.getThreadCpuTime(deep.getId()));
        }, () -> {
            stop = true;
            shallow.join(60_000);
            deep.join(60_000);
            Control.check(!shallow.isAlive() && !deep.isAlive(), "a thread hangs");
        });
    }

    private static Thread start(String name, int calls) {
        Thread thread = new Thread(() -> {
            while (!stop) {
                Control.check(down(calls) == calls, "wrong depth");
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static int down(int calls) {
        if (calls == 0) {
            for (int i = 0; i < 200_000; i++) {
                sink = sink * 31 + i;
            }
            return 0;
        }
        return down(calls - 1) + 1;
    }
}
