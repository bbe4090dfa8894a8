/**
 * Computes for so many seconds ("300"), until it has used so many seconds of CPU time ("cpu:2"), or for three seconds
 * after a file has come ("until:FILE"). A second argument is its exit code.
 */
public class Scripted {
    static volatile long sum;

    public static void main(String[] args) {
        String life = args[0];
        boolean used = life.startsWith("cpu:"), until = life.startsWith("until:");
        long end = until ? 100 : Long.parseLong(life.substring(used ? 4 : 0));
        java.lang.management.ThreadMXBean clock = used ? java.lang.management.ManagementFactory.getThreadMXBean() : null;
        long began = System.nanoTime(), now = began, look = now;
        for (; now - began < end * 1_000_000_000L; now = used ? began + clock.getCurrentThreadCpuTime() : System.nanoTime()) {
            for (int i = 0; i < 1000; i++) sum += i;
            if (now > look) { // a script that has failed has taken its folder with it
                if (!new java.io.File("attached.sh").exists()) return;
                if (until && new java.io.File(life.substring(6)).exists()) {
                    end = (now - began) / 1_000_000_000L + 3;
                    until = false;
                }
                look = now + 1_000_000_000L;
            }
        }
        System.out.println("done");
        if (args.length > 1) System.exit(Integer.parseInt(args[1]));
    }
}
