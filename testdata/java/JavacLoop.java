package truth;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.zip.CRC32;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Proves: whole stacks on a large real program with deep, ever changing stacks: javac.
 *
 * It generates a source tree in memory (seeded; some 200 classes with generics, lambdas, switches,
 * inner and anonymous classes) and compiles it on the main thread, again and again, into memory. Every
 * round must give the same class files as the first one.
 *
 * Arguments: rounds (0 = for ever), classes (200), seed (1), threads (1). Further threads compile the
 * same for ever, and what they make is not compared. The command "rounds" prints how many are done. When all rounds are done the main thread parks, and the program waits for "quit".
 */
public final class JavacLoop {
    private static volatile long rounds;
    private static volatile Throwable wrong;

    private JavacLoop() {}

    public static void main(String[] args) throws Exception {
        long wanted = args.length > 0 ? Long.parseLong(args[0]) : 0;
        int classes = args.length > 1 ? Integer.parseInt(args[1]) : 200;
        long seed = args.length > 2 ? Long.parseLong(args[2]) : 1;
        List<JavaFileObject> sources = new Generator(seed, classes).sources();
        Thread control = new Thread(JavacLoop::control, "control");
        control.setDaemon(true);
        control.start();
        for (int more = args.length > 3 ? Integer.parseInt(args[3]) : 1; more > 1; more--) {
            Thread beside = new Thread(() -> compileBeside(sources), "beside");
            beside.setDaemon(true);
            beside.start();
        }
        try {
            compileForEver(sources, wanted);
        } catch (Throwable thrown) {
            wrong = thrown;
        }
        Thread.sleep(Long.MAX_VALUE); // the control thread ends the program
    }

    private static void control() {
        Control.serve((command, out) -> {
            Control.check(command.equals("rounds"), "no such command: " + command);
            Control.check(wrong == null, String.valueOf(wrong));
            out.println(rounds);
        }, () -> {
            // At least two rounds, or nothing would have been compared.
            while (rounds < 2 && wrong == null) {
                Thread.sleep(5);
            }
            Control.check(wrong == null, String.valueOf(wrong));
        });
    }

    private static void compileForEver(List<JavaFileObject> sources, long wanted) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        Control.check(compiler != null, "this is no JDK: it has no compiler");
        long first = 0;
        while (wanted == 0 || rounds < wanted) {
            long sum = compileOnce(compiler, sources);
            if (rounds == 0) {
                first = sum;
            }
            Control.check(sum == first, "round " + rounds + " compiled to other class files than the first");
            rounds++;
        }
    }

    private static void compileBeside(List<JavaFileObject> sources) {
        try {
            for (;;) {
                compileOnce(ToolProvider.getSystemJavaCompiler(), sources);
            }
        } catch (IOException thrown) {
            wrong = thrown;
        }
    }

    /** Compiles all sources and gives back a checksum of the class files. */
    private static long compileOnce(JavaCompiler compiler, List<JavaFileObject> sources) throws IOException {
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null);
                Output output = new Output(files)) {
            List<String> options = Arrays.asList("-proc:none", "-nowarn", "-g");
            boolean compiled = compiler.getTask(null, output, null, options, null, sources).call();
            Control.check(compiled, "the generated sources do not compile");
            return output.checksum();
        }
    }

    /** Keeps class files in memory. */
    private static final class Output extends ForwardingJavaFileManager<StandardJavaFileManager> {
        private final Map<String, ByteArrayOutputStream> classes = new TreeMap<>();

        Output(StandardJavaFileManager files) {
            super(files);
        }

        @Override
        public JavaFileObject getJavaFileForOutput(JavaFileManager.Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
            return new SimpleJavaFileObject(URI.create("memory:///" + name.replace('.', '/') + kind.extension), kind) {
                @Override
                public OutputStream openOutputStream() {
                    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                    classes.put(name, bytes);
                    return bytes;
                }
            };
        }

        long checksum() {
            CRC32 sum = new CRC32();
            for (ByteArrayOutputStream bytes : classes.values()) {
                byte[] all = bytes.toByteArray();
                sum.update(all, 0, all.length);
            }
            return sum.getValue() << 20 | classes.size();
        }
    }

    /** Writes Java source text that compiles on any JDK from 8 on. */
    private static final class Generator {
        private final Random random;
        private final int classes;

        Generator(long seed, int classes) {
            random = new Random(seed);
            this.classes = classes;
        }

        List<JavaFileObject> sources() {
            List<JavaFileObject> sources = new ArrayList<>();
            for (int i = 0; i < classes; i++) {
                sources.add(source("Gen" + i, text(i)));
            }
            return sources;
        }

        private static JavaFileObject source(String name, String text) {
            URI uri = URI.create("memory:///gen/" + name + ".java");
            return new SimpleJavaFileObject(uri, JavaFileObject.Kind.SOURCE) {
                @Override
                public CharSequence getCharContent(boolean ignoreErrors) {
                    return text;
                }
            };
        }

        private String text(int number) {
            StringBuilder text = new StringBuilder("package gen;\nimport java.util.*;\nimport java.util.function.*;\nimport java.util.stream.*;\n");
            String parent = number > 0 && number % 4 == 0 ? " extends Gen" + (number - 1) + "<T>" : "";
            text.append("public class Gen").append(number).append("<T extends Comparable<T>>").append(parent).append(" {\n");
            text.append("  protected final List<T> items").append(number).append(" = new ArrayList<>();\n");
            int methods = 6 + random.nextInt(6);
            for (int i = 0; i < methods; i++) {
                method(text, number, i);
            }
            text.append("  static final class Pair<A, B> { final A a; final B b; Pair(A a, B b) { this.a = a; this.b = b; } }\n");
            text.append("  class Inner { class Innermost { int sum() { return items").append(number).append(".size(); } } }\n");
            return text.append("}\n").toString();
        }

        private void method(StringBuilder text, int number, int index) {
            String items = "items" + number;
            switch (random.nextInt(6)) {
                case 0:
                    text.append("  public Map<String, List<T>> group").append(index).append("() { return ").append(items)
                        .append(".stream().filter(x -> x != null).sorted(Comparator.<T>naturalOrder().reversed())")
                        .append(".collect(Collectors.groupingBy(x -> x.toString().substring(0, ").append(1 + random.nextInt(3))
                        .append("), TreeMap::new, Collectors.toList())); }\n");
                    break;
                case 1:
                    text.append("  public int choose").append(index).append("(int n, String s) { switch (s) {\n");
                    for (int i = 0; i < 4 + random.nextInt(8); i++) {
                        text.append("    case \"k").append(random.nextInt(100_000)).append("\": return n * ").append(i + 2).append(" + s.length();\n");
                    }
                    text.append("    default: return n; } }\n");
                    break;
                case 2:
                    text.append("  public <R> Function<T, R> then").append(index)
                        .append("(Function<? super T, ? extends List<R>> f, BiFunction<R, T, R> g) { return t -> { List<R> l = f.apply(t); return g.apply(l.get(0), t); }; }\n");
                    break;
                case 3:
                    text.append("  public Runnable anonymous").append(index).append("(final int n) { return new Runnable() { int k = n;\n")
                        .append("    public void run() { for (int i = 0; i < k; i++) { if (i % 3 == ").append(random.nextInt(3))
                        .append(") continue; try { k += Integer.parseInt(\"\" + i); } catch (RuntimeException e) { k--; } finally { k ^= i; } } } }; }\n");
                    break;
                case 4:
                    int other = random.nextInt(number + 1);
                    text.append("  public static <X extends Comparable<X>> int use").append(index).append("(Gen").append(other)
                        .append("<X> g, Pair<X, Integer> p) { Optional<X> best = g.items").append(other)
                        .append(".stream().max(X::compareTo); return best.map(x -> x.compareTo(p.a) + p.b).orElseGet(() -> p.b * ")
                        .append(random.nextInt(1_000)).append("); }\n");
                    break;
                default:
                    text.append("  long compute").append(index).append("(long a, double b) { long s = 0; outer: for (int i = 0; i < a; i++) { for (int j = i; j < b; j++) {")
                        .append(" s += (i * ").append(random.nextInt(1_000)).append("L ^ j) > ").append(random.nextInt(1_000))
                        .append(" ? i : (long) (j * b); if (s < 0) break outer; } } return s + (\"x\" + a + b).hashCode(); }\n");
            }
        }
    }
}
