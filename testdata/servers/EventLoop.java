package servers;

import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientRequest;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import java.io.IOException;

/**
 * A server on Vert.x. A request asks a peer.
 *
 *   well | sick   sick: the event loop itself waits for the answer
 *   port          of the peer
 */
public final class EventLoop {
    private static HttpClient client;
    private static int peer;

    private EventLoop() {}

    public static void main(String[] args) throws Exception {
        peer = Integer.parseInt(args[1]);
        Vertx vertx = Vertx.vertx(new VertxOptions().setEventLoopPoolSize(2));
        client = vertx.createHttpClient(new HttpClientOptions().setMaxPoolSize(20));
        HttpServer server = vertx.createHttpServer(new HttpServerOptions().setHost("127.0.0.1").setPort(0))
                .requestHandler(args[0].equals("sick") ? EventLoop::waits : EventLoop::goesOn);
        Work.serve(server.listen().toCompletionStage().toCompletableFuture().get().actualPort());
        Runtime.getRuntime().halt(0);
    }

    private static void waits(HttpServerRequest request) {
        try {
            request.response().end(Work.ask(peer));
        } catch (IOException e) {
            request.response().setStatusCode(500).end();
        }
    }

    private static void goesOn(HttpServerRequest request) {
        client.request(HttpMethod.GET, peer, "127.0.0.1", "/").compose(HttpClientRequest::send).compose(r -> r.body())
                .onSuccess(request.response()::end)
                .onFailure(e -> request.response().setStatusCode(500).end());
    }
}
