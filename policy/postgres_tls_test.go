package policy_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/floodgate-go/floodgate/policy"
)

// With tls: true, a server whose certificate nobody vouches for gets no password: the connection ends in the handshake.
func TestPostgreSQLMustShowACertificateThatCanBeVerified(t *testing.T) {
	https := httptest.NewTLSServer(nil) // for its certificate, which it has signed itself
	defer https.Close()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shaken := make(chan error, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			var request [8]byte // SSLRequest
			_, err = io.ReadFull(conn, request[:])
			if err == nil {
				_, err = conn.Write([]byte("S"))
			}
			if err == nil {
				shaken <- tls.Server(conn, &tls.Config{Certificates: https.TLS.Certificates, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
			}
			_ = conn.Close()
		}
	}()
	text := `store: {synced: {postgres: {address: "` + listener.Addr().String() + `", user: u, password: p, database: d, tls: true, timeout: 20s}}}` + sharedAndLocal
	set, err := policy.Parse("f.yaml", []byte(text), policy.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err == nil {
		t.Error("the client has accepted the certificate")
	}
	_ = listener.Close()
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}
