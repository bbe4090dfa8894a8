package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", nil)
	return a
}

// sign makes a certificate and writes NAME.pem and NAME.key.
func (a *authority) sign(name string, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		IsCA: by == nil, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	} else {
		c.KeyUsage = x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", pkcs)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, data []byte) {
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// TestTLS: private authorities and client certificates, valid and invalid, by HTTP and by gRPC. No fault in them drops
// a message.
func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	ours.sign("server", ours)
	ours.sign("client", ours)
	theirs.sign("client", theirs)
	pair, err := tls.LoadX509KeyPair(ours.file("server.pem"), ours.file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ours.cert)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Grpc-Status", "0")
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients,
		ClientAuth: tls.RequireAndVerifyClientCert}
	s.StartTLS()
	defer s.Close()
	at := s.Listener.Addr().String()
	as := func(ca string, client *authority) Options {
		return Options{CAFile: ca, CertFile: client.file("client.pem"), KeyFile: client.file("client.key")}
	}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"right":               {as(ours.file("ca.pem"), ours), "sent"},
		"unknown authority":   {as("", ours), "again"},
		"wrong authority":     {as(theirs.file("ca.pem"), ours), "again"},
		"no certificate":      {Options{CAFile: ours.file("ca.pem")}, "again"},
		"foreign certificate": {as(ours.file("ca.pem"), theirs), "again"},
	} {
		for _, scheme := range []string{"https", "grpcs"} {
			c.o.URL, c.o.Method = scheme+"://"+at, "/a.B/C"
			client := client(t, c.o)
			call := client.Post
			if client.IsGRPC() {
				call = client.Call
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if _, err := call(ctx, &Request{Body: []byte("m")}); verdict(err) != c.want {
				t.Errorf("%s, %s: %s (%v)", name, scheme, verdict(err), err)
			}
			cancel()
		}
	}
	for name, o := range map[string]Options{
		"no such file":     {CAFile: ours.file("none.pem")},
		"a key":            {CAFile: ours.file("ca.key")},
		"half a pair":      {CertFile: ours.file("client.pem")},
		"of another's key": {CertFile: ours.file("client.pem"), KeyFile: theirs.file("client.key")},
	} {
		o.URL = "https://" + at
		if _, err := New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
