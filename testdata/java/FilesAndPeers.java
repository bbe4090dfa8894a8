package truth;

import java.io.File;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.security.Security;
import java.util.Map;
import java.util.TreeMap;

/**
 * Proves: calls that read and write are counted by file and peer.
 *
 * Each command prints what the program itself has counted, a line for each target and operation: "OPERATION TARGET CALLS
 * BYTES NANOSECONDS". "files N DIR" writes, forces and reads three files. "peer HOW N MS" asks a peer N times that needs
 * MS milliseconds to answer; HOW is blocking, timeout, channel, virtual or selector. "lookup N" looks up localhost.
 */
public final class FilesAndPeers {
    private static final int ANSWER = 100;
    private static final Map<String, long[]> SUMS = new TreeMap<>();

    private FilesAndPeers() {}

    public static void main(String[] args) throws Exception {
        Security.setProperty("networkaddress.cache.ttl", "0");
        InetAddress.getByName("localhost");
        Control.serve((command, out) -> {
            String[] words = command.split(" ");
            SUMS.clear();
            switch (words[0]) {
                case "files":
                    files(Integer.parseInt(words[1]), new File(words[2]));
                    break;
                case "peer":
                    peer(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]));
                    break;
                case "lookup":
                    lookup(Integer.parseInt(words[1]));
                    break;
                default:
                    Control.check(false, "no such command: " + command);
            }
            print(out);
        }, () -> {});
    }

    private static void print(PrintStream out) {
        SUMS.forEach((what, n) -> out.println(what + " " + n[0] + " " + n[1] + " " + n[2]));
    }

    private static synchronized void add(String what, long bytes, long began) {
        long[] sum = SUMS.computeIfAbsent(what, k -> new long[3]);
        sum[0]++;
        sum[1] += bytes;
        sum[2] += System.nanoTime() - began;
    }

    private static void files(int times, File folder) throws Exception {
        byte[] block = new byte[1000];
        for (int i = 0; i < times; i++) {
            File file = new File(folder, "file" + i % 3);
            long began = System.nanoTime();
            try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
                add("open " + file, 0, began);
                for (int k = 0; k <= i % 3; k++) {
                    began = System.nanoTime();
                    f.write(block);
                    add("write " + file, block.length, began);
                }
                began = System.nanoTime();
                f.getFD().sync();
                add("force " + file, 0, began);
                f.seek(0);
                began = System.nanoTime();
                int n = f.read(block, 0, 500);
                add("read " + file, n, began);
            }
        }
    }

    private static void lookup(int times) throws Exception {
        for (int i = 0; i < times; i++) {
            long began = System.nanoTime();
            InetAddress.getAllByName("localhost");
            add("lookup localhost", 0, began);
        }
    }

    /** Asks a peer that needs some time to answer. */
    private static void peer(String how, int times, int millis) throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread answering = new Thread(() -> answer(server, millis), "answering");
            answering.setDaemon(true);
            answering.start();
            InetSocketAddress to = new InetSocketAddress(server.getInetAddress(), server.getLocalPort());
            String name = "127.0.0.1:" + server.getLocalPort();
            Throwable[] wrong = new Throwable[1];
            Runnable asking = () -> {
                try {
                    ask(how, to, name, times);
                } catch (Throwable t) {
                    wrong[0] = t;
                }
            };
            Thread asks = how.equals("virtual")
                ? (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, asking)
                : new Thread(asking, "asking");
            if (!how.equals("virtual")) {
                asks.start();
            }
            asks.join();
            answering.join();
            if (wrong[0] != null) {
                throw new IllegalStateException(wrong[0]);
            }
        }
    }

    private static void answer(ServerSocket server, int millis) {
        byte[] text = new byte[ANSWER];
        try (Socket socket = server.accept()) {
            InputStream in = socket.getInputStream();
            while (in.read() >= 0) {
                Thread.sleep(millis);
                socket.getOutputStream().write(text);
            }
        } catch (Exception e) {
            e.printStackTrace();
        }
    }

    private static void ask(String how, InetSocketAddress to, String name, int times) throws Exception {
        if (how.equals("channel") || how.equals("selector")) {
            askChannel(how.equals("selector"), to, name, times);
            return;
        }
        byte[] text = new byte[ANSWER];
        try (Socket socket = new Socket()) {
            long began = System.nanoTime();
            socket.connect(to, how.equals("timeout") ? 10_000 : 0);
            add("connect " + name, 0, began);
            if (how.equals("timeout")) {
                socket.setSoTimeout(10_000);
            }
            InputStream in = socket.getInputStream();
            OutputStream out = socket.getOutputStream();
            for (int i = 0; i < times; i++) {
                began = System.nanoTime();
                out.write(1);
                add("write " + name, 1, began);
                began = System.nanoTime();
                int n = in.read(text);
                add("read " + name, n, began);
                Control.check(n == ANSWER, "read " + n);
            }
        }
    }

    private static void askChannel(boolean selects, InetSocketAddress to, String name, int times) throws Exception {
        ByteBuffer text = ByteBuffer.allocateDirect(ANSWER);
        long began = System.nanoTime();
        try (SocketChannel channel = SocketChannel.open(to); Selector selector = Selector.open()) {
            add("connect " + name, 0, began);
            channel.configureBlocking(!selects);
            if (selects) {
                channel.register(selector, SelectionKey.OP_READ);
            }
            for (int i = 0; i < times; i++) {
                text.clear().limit(1);
                began = System.nanoTime();
                channel.write(text);
                add("write " + name, 1, began);
                text.clear();
                if (selects) {
                    began = System.nanoTime();
                    selector.select();
                    selector.selectedKeys().clear();
                    add("wait [eventpoll]", 0, began);
                }
                began = System.nanoTime();
                int n = channel.read(text);
                add("read " + name, n, began);
                Control.check(n == ANSWER, "read " + n);
            }
        }
    }
}
