package truth;

/**
 * Has methods compiled, and has HotSpot give the code up. "N" does that in N copies of a class, each of its own class
 * loader. In each copy two methods are compiled, and two frames of this code are turned into interpreted ones: one comes
 * to a place that it never came to before, the other one waits in a call that loads a class for which the code is not
 * right. It is meant to run with -Xbatch -XX:-TieredCompilation, and with the method reconsider interpreted.
 */
public final class Reconsidered {
    static final int TIMES = 12_000; // C2 compiles a method at its 10,000th call

    static volatile int sink;

    private Reconsidered() {}

    public interface Copy {
        int surprised(boolean rare);

        int outlived(Runnable first);
    }

    public static class CopiedBase {
        int value() {
            return 1;
        }
    }

    public static final class CopiedLater extends CopiedBase {
        @Override
        int value() {
            return 2;
        }
    }

    public static final class CopiedWork implements Copy {
        final CopiedBase base = new CopiedBase();
        int sum;

        @Override
        public int surprised(boolean rare) {
            if (rare) {
                sum += 7;
            }
            return ++sum;
        }

        /** Before CopiedLater is loaded, value has no other implementation. */
        @Override
        public int outlived(Runnable first) {
            first.run();
            return base.value();
        }
    }

    static final class Loader extends ClassLoader {
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("truth.Reconsidered$Copied")) {
                return super.loadClass(name, resolve);
            }
            Class<?> loaded = findLoadedClass(name);
            if (loaded != null) {
                return loaded;
            }
            try {
                byte[] code = Happenings.codeOf(name.substring("truth.".length()) + ".class");
                return defineClass(name, code, 0, code.length);
            } catch (Exception e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    public static void main(String[] args) {
        Control.serve((command, out) -> {
            for (int n = Integer.parseInt(command); n > 0; n--) {
                reconsider(new Loader());
            }
        }, () -> {});
    }

    static void reconsider(Loader loader) throws Exception {
        Copy copy = (Copy) loader.loadClass("truth.Reconsidered$CopiedWork").getConstructor().newInstance();
        // Of three classes: the call is not inlined.
        Runnable[] nothing = {() -> sink = 1, () -> sink = 2, () -> sink = 3};
        for (int i = 0; i < TIMES; i++) {
            sink = copy.surprised(false);
            sink = copy.outlived(nothing[i % nothing.length]);
        }
        sink = copy.surprised(true);
        sink = copy.outlived(() -> {
            try {
                Class.forName("truth.Reconsidered$CopiedLater", true, loader);
            } catch (ClassNotFoundException e) {
                throw new AssertionError(e);
            }
        });
    }
}
