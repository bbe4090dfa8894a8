import java.util.ArrayList;
import java.util.List;

/** A JVM with threads in known states and code compiled at every level. */
public class Sample {
    static volatile long sink;
    static final Object lock = new Object();

    interface Shape { double area(); }
    static final class Square implements Shape { final double a; Square(double a) { this.a = a; } public double area() { return a * a; } }
    static final class Circle implements Shape { final double r; Circle(double r) { this.r = r; } public double area() { return Math.PI * r * r; } }

    static int inner(int i) {
        return (i * 31) ^ (i >>> 3);
    }

    static int middle(int i) {
        int a = inner(i);
        int b = inner(i + 1);
        return a + b;
    }

    static long hot(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += middle(i);
        }
        return sum;
    }

    static void work() {
        Shape[] shapes = {new Square(2), new Circle(3)};
        List<String> list = new ArrayList<>();
        for (long n = 0; ; n++) {
            sink += hot(1000);
            double d = 0;
            for (Shape s : shapes) {
                d += s.area();
            }
            if (n % 64 == 0) { // few enough that a large heap needs no collection while a test looks
                list.add("n" + n + d);
            }
            if (list.size() > 100) {
                list.clear();
            }
        }
    }

    static void start(String name, Runnable r) {
        Thread t = new Thread(r, name);
        t.setDaemon(true);
        t.start();
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        start("worker", Sample::work);
        start("\u00e9t\u00e9-\u65e5\u672c", () -> sleep(1L << 40));
        start("caf\u00e9", java.util.concurrent.locks.LockSupport::park);
        start("emoji-\ud83d\ude00", () -> sleep(1L << 40));
        StringBuilder name = new StringBuilder();
        for (int i = 0; i < 300; i++) {
            name.append("long-");
        }
        start(name.toString(), () -> sleep(1L << 40));
        synchronized (lock) {
            start("blocked", () -> { synchronized (lock) { sink++; } });
            Object other = new Object();
            start("waiting", () -> {
                synchronized (other) {
                    try {
                        other.wait();
                    } catch (InterruptedException e) {
                        throw new RuntimeException(e);
                    }
                }
            });
            sleep(args.length > 0 ? Long.parseLong(args[0]) : 3000);
            System.out.println("ready");
            sleep(1L << 40);
        }
    }
}
