package truth;

import java.io.File;
import java.io.FileInputStream;
import java.io.RandomAccessFile;

/**
 * Proves: of a mounted virtual thread all frames are shown, also those that are in the heap, and who it
 * is. Needs JDK 21; it is compiled for 8, hence the reflection.
 *
 * Two virtual threads descend and then stand in a native method, which keeps them mounted:
 *
 *   mounted   has never given up its carrier: all its frames are on the carrier's stack, and the
 *             carrier's own frames below them
 *   thawed    has given up its carrier at its deepest point. As it goes on, HotSpot thaws its topmost frames
 *             alone; the others stay in the heap
 *
 * "stacks" prints both, as truth.Kinds does, "ids" their numbers and names. Argument: how deep they descend (300).
 */
public final class Virtual {
    private Virtual() {}

    private static volatile FileInputStream empty;
    private static volatile int standing;

    public static void main(String[] args) throws Exception {
        int depth = args.length > 0 ? Integer.parseInt(args[0]) : 300;
        // Each of the two keeps its carrier, and where there is one CPU there would be one carrier.
        System.setProperty("jdk.virtualThreadScheduler.parallelism", "2");
        int[] results = new int[2];
        RandomAccessFile writer = openPipe();
        Thread mounted = start("", () -> results[0] = descend(depth, false));
        awaitStanding(mounted, 1);
        Thread thawed = start("thawed \u00e9", () -> results[1] = descend(depth, true));
        awaitStanding(thawed, 2);
        Control.serve((command, out) -> {
            if (command.equals("ids")) {
                out.println(id(mounted) + " " + mounted.getName());
                out.println(id(thawed) + " " + thawed.getName());
                return;
            }
            Control.check(command.equals("stacks"), "no such command: " + command);
            print("mounted", mounted, out);
            print("thawed", thawed, out);
        }, () -> {
            writer.write(new byte[2]); // one for each
            mounted.join(20_000);
            thawed.join(20_000);
            Control.check(results[0] == depth && results[1] == depth, results[0] + " and " + results[1] + ", not " + depth);
        });
    }

    private static int descend(int depth, boolean giveUpCarrier) {
        if (depth == 0) {
            return stand(giveUpCarrier);
        }
        return 1 + descend(depth - 1, giveUpCarrier);
    }

    private static int stand(boolean giveUpCarrier) {
        if (giveUpCarrier) {
            Thread.yield();
        }
        standing++;
        try {
            return empty.read();
        } catch (java.io.IOException gone) {
            return -1;
        }
    }

    /** A pipe that is open at both ends and empty. */
    private static RandomAccessFile openPipe() throws Exception {
        File fifo = new File(System.getProperty("java.io.tmpdir"), "virtual-fifo-" + System.nanoTime());
        int status = new ProcessBuilder("mkfifo", fifo.getPath()).inheritIO().start().waitFor();
        Control.check(status == 0, "mkfifo failed");
        RandomAccessFile writer = new RandomAccessFile(fifo, "rw");
        empty = new FileInputStream(fifo);
        Control.check(fifo.delete(), "cannot delete " + fifo);
        return writer;
    }

    private static Thread start(String name, Runnable task) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) type.getMethod("start", Runnable.class).invoke(builder, task);
    }

    private static long id(Thread thread) {
        try {
            return (Long) Thread.class.getMethod("threadId").invoke(thread);
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static void awaitStanding(Thread thread, int count) throws InterruptedException {
        while (standing < count || !thread.getStackTrace()[0].isNativeMethod()) {
            Thread.sleep(1);
        }
    }

    private static void print(String name, Thread thread, java.io.PrintStream out) {
        out.println("THREAD " + name + " parked");
        for (StackTraceElement frame : thread.getStackTrace()) {
            String line = frame.isNativeMethod() ? "native" : String.valueOf(Math.max(0, frame.getLineNumber()));
            out.println(frame.getClassName() + "." + frame.getMethodName() + ":" + line);
        }
    }
}
