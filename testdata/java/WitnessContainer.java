package truth;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;

/**
 * Proves: what others say of a servlet container at rest is what goprof says (TestWitnesses).
 *
 * Tomcat, whose jars are the arguments, has served some requests; its threads wait for more, and one
 * stands still in a servlet. It is called by reflection: testdata/java is compiled without it.
 * "threads" prints the names of the threads that stand still.
 */
public final class WitnessContainer {
    private WitnessContainer() {}

    private static final int REQUESTS = 1_000;
    private static final Gate gate = new Gate();
    private static volatile String stood = "";

    public static void main(String[] jars) throws Exception {
        URL[] urls = new URL[jars.length];
        for (int i = 0; i < jars.length; i++) {
            urls[i] = new File(jars[i]).toURI().toURL();
        }
        URLClassLoader loader = new URLClassLoader(urls);
        Thread.currentThread().setContextClassLoader(loader);
        int port = start(loader);
        for (int i = 0; i < REQUESTS; i++) {
            String answer = get(port, "/hello");
            Control.check(answer.endsWith("hello"), answer);
        }
        gate.shut();
        Thread client = new Thread(() -> stood = get(port, "/stand"), "client");
        client.setDaemon(true);
        client.start();
        while (!gate.reached) {
            Thread.sleep(2);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("threads"), "no such command: " + command);
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                String name = thread.getName();
                if (name.contains("-exec-") || name.endsWith("-Acceptor") || name.equals("client")) {
                    out.println(name);
                }
            }
        }, () -> {
            gate.open(null);
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                if (thread.getName().contains("-exec-")) {
                    java.util.concurrent.locks.LockSupport.unpark(thread);
                }
            }
            client.join(20_000);
            Control.check(stood.endsWith("stood 1"), stood);
        });
    }

    /** Starts Tomcat on a port of its own choice, and returns that. */
    private static int start(ClassLoader loader) throws Exception {
        File base = Files.createTempDirectory("goprof-tomcat").toFile();
        Class<?> type = loader.loadClass("org.apache.catalina.startup.Tomcat");
        Object tomcat = type.getDeclaredConstructor().newInstance();
        call(tomcat, "setBaseDir", base.getPath());
        call(tomcat, "setPort", 0);
        Object connector = call(tomcat, "getConnector");
        call(connector, "setProperty", "address", "127.0.0.1");
        Object context = call(tomcat, "addContext", "", base.getPath());
        Class<?> servletType = loader.loadClass("javax.servlet.Servlet");
        Object servlet = Proxy.newProxyInstance(loader, new Class<?>[] {servletType}, (proxy, method, args) -> {
            if (method.getName().equals("service")) {
                serve(args[0], args[1]);
            }
            return null;
        });
        call(tomcat, "addServlet", "", "witness", servlet);
        call(context, "addServletMappingDecoded", "/*", "witness");
        // At rest: nothing is done every ten seconds.
        call(call(tomcat, "getServer"), "setPeriodicEventDelay", 0);
        call(call(tomcat, "getEngine"), "setBackgroundProcessorDelay", 0);
        call(tomcat, "start");
        delete(base); // it needs no files
        return (Integer) call(connector, "getLocalPort");
    }

    private static void serve(Object request, Object response) throws Exception {
        String text = "hello";
        if (call(request, "getRequestURI").equals("/stand")) {
            text = "stood " + gate.pass(1);
        }
        try (PrintWriter out = (PrintWriter) call(response, "getWriter")) {
            out.print(text);
        }
    }

    /** Calls a public method; of those with that name the first that takes the arguments. */
    private static Object call(Object on, String name, Object... args) throws Exception {
        for (Method method : on.getClass().getMethods()) {
            if (method.getName().equals(name) && takes(method.getParameterTypes(), args)) {
                return method.invoke(on, args);
            }
        }
        throw new NoSuchMethodException(on.getClass() + "." + name);
    }

    private static boolean takes(Class<?>[] types, Object[] args) {
        boolean takes = types.length == args.length;
        for (int i = 0; takes && i < args.length; i++) {
            takes = types[i].isInstance(args[i]) || types[i] == int.class && args[i] instanceof Integer;
        }
        return takes;
    }

    private static void delete(File dir) {
        File[] files = dir.listFiles();
        for (File file : files == null ? new File[0] : files) {
            delete(file);
        }
        dir.delete();
    }

    private static String get(int port, String path) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            OutputStream out = socket.getOutputStream();
            out.write(("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            out.flush();
            InputStream in = socket.getInputStream();
            ByteArrayOutputStream answer = new ByteArrayOutputStream();
            byte[] part = new byte[4096];
            for (int n = in.read(part); n >= 0; n = in.read(part)) {
                answer.write(part, 0, n);
            }
            String text = answer.toString("US-ASCII");
            // The body is chunked, or has its length.
            return text.replaceFirst("(?s)\r\n0\r\n\r\n$", "").trim();
        } catch (java.io.IOException wrong) {
            return wrong.toString();
        }
    }
}
