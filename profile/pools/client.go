package pools

import (
	"slices"

	"goprof/profile"
	"goprof/profile/naming"
)

// clients are packages of libraries that send requests to others: drivers of databases, clients of HTTP and of caches.
var clients = []string{"java.net.http.", "jdk.internal.net.http.", "sun.net.www.http.", "sun.net.www.protocol.http.",
	"org.postgresql.", "com.mysql.", "org.mariadb.", "oracle.jdbc.", "com.microsoft.sqlserver.",
	"com.ibm.db2.", "org.h2.engine.SessionRemote.", "org.hsqldb.ClientConnection.", "org.apache.derby.client.",
	"com.mongodb.", "redis.clients.", "io.lettuce.", "org.redisson.", "org.apache.http.", "org.apache.hc.client5.",
	"okhttp3.", "com.datastax.", "javax.naming.ldap.", "com.sun.jndi.ldap.", "javax.mail.", "jakarta.mail.",
	"net.spy.memcached.",
	"org.apache.kafka.clients.", "com.rabbitmq.client.", "io.grpc.stub.ClientCalls", "org.springframework.http.client.",
	"org.springframework.web.client.", "io.helidon.webclient.", "org.eclipse.jetty.client.", "org.asynchttpclient.",
	"org.elasticsearch.client.", "software.amazon.awssdk.", "com.amazonaws.", "feign."}

// IsClient reports whether a method of a client library is on a stack.
func IsClient(s *profile.Stack) bool {
	return slices.ContainsFunc(javaOnly(s.Frames), ofClient)
}

func ofClient(method string) bool { return naming.BeginsWith(method, clients...) }

// asked returns the program's method that sends a request through a client library, and the library's method that it
// calls. They are empty if the library's own thread waits, or if no such method is near.
func asked(methods []string) (from, site string) {
	for i, name := range methods {
		switch {
		case ofClient(name):
			from = name
		case from != "":
			return from, name
		case i >= nearby:
			return "", ""
		}
	}
	return "", ""
}
