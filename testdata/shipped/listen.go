package shipped

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Listen is a server that speaks HTTP/1.1 and HTTP/2 without TLS.
func Listen(t *testing.T, answer http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
