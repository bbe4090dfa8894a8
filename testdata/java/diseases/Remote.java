package truth;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Sick: all threads of a pool have asked a service that does not answer.
 * Well: it answers at once, and they rest between two requests.
 * The service is a thread of the same JVM; its ends of the connections are those of a server.
 */
public final class Remote {
    public static void main(String[] args) throws Exception {
        boolean sick = Ward.sick(args);
        ServerSocket service = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        List<Socket> accepted = new ArrayList<>();
        Ward.forever("service", () -> {
            Socket s = service.accept();
            accepted.add(s);
            if (sick) return;
            Ward.start("serve-" + accepted.size(), () -> {
                for (int c = s.getInputStream().read(); c >= 0; c = s.getInputStream().read()) {
                    s.getOutputStream().write(c);
                }
            });
        });
        ExecutorService pool = Executors.newFixedThreadPool(6, Ward.daemons("request-"));
        for (int i = 0; i < 6; i++) {
            pool.submit(() -> {
                Socket s = new Socket(service.getInetAddress(), service.getLocalPort());
                while (true) {
                    s.getOutputStream().write(1);
                    s.getInputStream().read();
                    Thread.sleep(20);
                }
            });
        }
        Thread.sleep(300);
        Ward.serve();
    }
}
