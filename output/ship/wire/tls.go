package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// tls returns how certificates are made and checked. The check of the server's certificate cannot be turned off.
func (c *Client) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.o.CAFile != "" {
		pool, err := pool(c.o.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	if (c.o.CertFile == "") != (c.o.KeyFile == "") {
		return nil, errors.New("a client's certificate needs its key, and a key its certificate: name both files")
	}
	if c.o.CertFile == "" {
		return config, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.o.CertFile, c.o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("the client's certificate: %w", err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return config, nil
}

// pool returns the trusted certificates: the system's, if there are any, and those of a file.
func pool(file string) (*x509.CertPool, error) {
	all, err := x509.SystemCertPool()
	if err != nil {
		all = x509.NewCertPool() // a container that is built from scratch has none
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	if !all.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("certificates: %s has none in PEM (-----BEGIN CERTIFICATE-----)", file)
	}
	return all, nil
}
