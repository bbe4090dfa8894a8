package truth;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: classes that the JVM makes up have names that are the same in every run, and frames that only pass
 * calls on can be folded.
 *
 * One thread stands still for each way to pass a call on. It begins in its begin... method and stands in
 * "stand"; what lies between is the JDK's. With the argument "spin" three threads of a pool make calls by
 * reflection all the time instead.
 */
public final class Plumbing {
    private Plumbing() {}

    /** What a proxy implements. */
    public interface Step {
        void step();
    }

    interface Body {
        void run() throws Throwable;
    }

    private static volatile boolean open;
    private static volatile boolean stop;
    private static volatile long turns;

    public static void main(String[] args) throws Throwable {
        if (args.length > 0 && args[0].equals("spin")) {
            spin();
            return;
        }
        List<Thread> threads = new ArrayList<>();
        threads.add(start("lambda", Plumbing::beginLambda));
        threads.add(start("reference", Plumbing::beginReference));
        threads.add(start("reflection", Plumbing::beginReflection));
        threads.add(start("first-reflection", Plumbing::beginFirstReflection));
        threads.add(start("constructor", Plumbing::beginConstructor));
        threads.add(start("handle", Plumbing::beginHandle));
        threads.add(start("proxy", Plumbing::beginProxy));
        threads.add(start("stream", Plumbing::beginStream));
        if (hiddenClass() != null) {
            threads.add(start("hidden-class", Plumbing::beginHiddenClass));
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("threads"), "no such command: " + command);
            for (Thread thread : threads) {
                out.println(thread.getName());
            }
        }, () -> {
            open = true;
            for (Thread thread : threads) {
                LockSupport.unpark(thread);
                thread.join(20_000);
                Control.check(!thread.isAlive() && ((Standing) thread).wrong == null, thread.getName() + ": " + ((Standing) thread).wrong);
            }
        });
    }

    /** A thread that stands still in its first call of stand() after it has said that it is ready. */
    private static final class Standing extends Thread {
        final Body body;
        final CountDownLatch reached = new CountDownLatch(1);
        boolean ready;
        volatile Throwable wrong;

        Standing(String name, Body body) {
            super(name);
            this.body = body;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                body.run();
            } catch (Throwable thrown) {
                wrong = thrown;
                reached.countDown();
            }
        }
    }

    private static Thread start(String name, Body body) throws InterruptedException {
        Standing thread = new Standing(name, body);
        thread.start();
        thread.reached.await();
        if (thread.wrong != null) {
            throw new IllegalStateException(name, thread.wrong);
        }
        // From "reached" to its stand it has a few instructions to go.
        while (thread.getState() != Thread.State.WAITING) {
            Thread.sleep(1);
        }
        return thread;
    }

    private static void ready() {
        ((Standing) Thread.currentThread()).ready = true;
    }

    public static void stand() {
        Standing self = (Standing) Thread.currentThread();
        if (self.ready) {
            self.reached.countDown();
            while (!open) {
                LockSupport.park();
            }
        }
    }

    private static void beginLambda() {
        ready();
        Runnable lambda = () -> stand();
        lambda.run();
    }

    private static void beginReference() {
        ready();
        Runnable reference = Plumbing::stand;
        reference.run();
    }

    /** Often enough for the JVM to generate an accessor, or a method handle. */
    private static void beginReflection() throws Exception {
        Method method = Plumbing.class.getMethod("stand");
        for (int i = 0; i < 30; i++) {
            if (i == 29) {
                ready();
            }
            method.invoke(null);
        }
    }

    /** Up to JDK 17, and for the JVM's own early calls, the VM makes it. */
    private static void beginFirstReflection() throws Exception {
        ready();
        Plumbing.class.getMethod("stand").invoke(null);
    }

    /** A class whose constructor stands still. */
    public static final class Stands {
        public Stands() {
            stand();
        }
    }

    private static void beginConstructor() throws Exception {
        for (int i = 0; i < 30; i++) {
            if (i == 29) {
                ready();
            }
            Stands.class.getConstructor().newInstance();
        }
    }

    private static void beginHandle() throws Throwable {
        MethodHandle stand = MethodHandles.lookup().findStatic(Plumbing.class, "stand", MethodType.methodType(void.class));
        ready();
        stand.invokeWithArguments();
    }

    private static void beginProxy() {
        Step proxy = (Step) Proxy.newProxyInstance(Plumbing.class.getClassLoader(), new Class<?>[] {Step.class}, (p, method, args) -> {
            stand();
            return null;
        });
        ready();
        proxy.step();
    }

    private static void beginStream() {
        ready();
        Arrays.asList(1, 2, 3).stream().map(x -> x + 1).filter(x -> x > 2).forEach(x -> stand());
    }

    private static void beginHiddenClass() throws Exception {
        Runnable hidden = (Runnable) hiddenClass().getConstructor().newInstance();
        ready();
        hidden.run();
    }

    /** A class of ours that is hidden (JDK 15 on), or null. */
    private static Class<?> hiddenClass() throws Exception {
        ClassFile file = new ClassFile("truth/HiddenStep", "java/lang/Runnable", 1);
        int stand = file.call("truth/Plumbing", "stand", "()V");
        file.method(ClassFile.PUBLIC, "run", "()V", 1, 2, 0xb8, stand >> 8, stand & 0xff, 0xb1); // invokestatic, return
        for (Method method : MethodHandles.Lookup.class.getMethods()) {
            if (method.getName().equals("defineHiddenClass")) {
                Object none = Array.newInstance(method.getParameterTypes()[2].getComponentType(), 0);
                Object lookup = method.invoke(MethodHandles.lookup(), file.bytes(), true, none);
                return ((MethodHandles.Lookup) lookup).lookupClass();
            }
        }
        return null;
    }

    private static void spin() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(3);
        Method turn = Plumbing.class.getMethod("turn");
        for (int i = 0; i < 3; i++) {
            pool.submit(() -> {
                while (!stop) {
                    turn.invoke(null);
                }
                return null;
            });
        }
        Control.serve((command, out) -> {
            throw new IllegalStateException("no such command: " + command);
        }, () -> {
            stop = true;
            pool.shutdown();
            Control.check(pool.awaitTermination(20, TimeUnit.SECONDS), "the pool does not end");
            Control.check(turns > 0, "no turns");
        });
    }

    public static void turn() {
        long sum = 0;
        for (int i = 0; i < 20_000; i++) {
            sum += i ^ turns;
        }
        turns = sum == 0 ? 1 : turns + 1;
    }
}
