package servers;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.nio.ByteBuffer;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** A Jetty server whose requests are handled by virtual threads. It prints READY and its port, and serves until its stdin ends. */
public final class Jetty {
    private Jetty() {}

    public static void main(String[] args) throws Exception {
        QueuedThreadPool pool = new QueuedThreadPool(16);
        pool.setVirtualThreadsExecutor(Executors.newVirtualThreadPerTaskExecutor());
        Server server = new Server(pool);
        ServerConnector connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(new Handler.Abstract() {
            @Override
            public boolean handle(Request request, Response response, Callback callback) {
                response.write(true, ByteBuffer.wrap(Work.reply().getBytes(StandardCharsets.US_ASCII)), callback);
                return true;
            }
        });
        server.start();
        Work.serve(connector.getLocalPort());
        server.stop();
    }
}
