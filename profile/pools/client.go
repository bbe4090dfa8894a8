package pools

import (
	"strings"

	"goprof/profile"
)

// clients are packages of libraries that ask others: drivers of databases, clients of HTTP and of caches.
var clients = []string{"java.net.http.", "jdk.internal.net.http.", "sun.net.www.http.", "sun.net.www.protocol.http.",
	"java.sql.", "org.postgresql.", "com.mysql.", "org.mariadb.", "oracle.jdbc.", "com.microsoft.sqlserver.",
	"com.ibm.db2.", "org.h2.", "org.hsqldb.", "org.apache.derby.client.", "com.mongodb.", "redis.clients.",
	"io.lettuce.", "org.redisson.", "org.apache.http.", "org.apache.hc.client5.", "okhttp3.", "com.datastax.",
	"javax.naming.ldap.", "com.sun.jndi.ldap.", "javax.mail.", "jakarta.mail.", "net.spy.memcached."}

// IsClient reports whether a client library is on a stack.
func IsClient(s *profile.Stack) bool {
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.Func == nil || !f.Kind.Java() {
			continue
		}
		for _, prefix := range clients {
			if strings.HasPrefix(f.Func.Name, prefix) {
				return true
			}
		}
	}
	return false
}
