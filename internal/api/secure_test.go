package api_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/api"
)

func serverTLS(t *testing.T) *tls.Config {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS13}
}

// A listener that is secure serves those who do not speak TLS too, so that they are told; one who is silent is
// in nobody's way.
func TestASecureListenerSpeaksTLSAndTellsTheOthers(t *testing.T) {
	l, err := api.Listen("https://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	stop, done := serve(t, api.Secure(l, serverTLS(t)))
	secure := func(s string) (*http.Client, string, error) {
		return api.DialAs(s, &tls.Config{InsecureSkipVerify: true})
	}
	for endpoint, dial := range map[string]func(string) (*http.Client, string, error){"https://": secure, "http://": api.Dial} {
		client, base, err := dial(endpoint + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Get(base + "/x")
		if err != nil {
			t.Fatalf("%s: %v", endpoint, err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(body) != "HTTP/2.0 /x" || (answer.TLS != nil) != (endpoint == "https://") {
			t.Errorf("%s answered %q, by TLS: %v", endpoint, body, answer.TLS != nil)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Serve returned %v after a cancel", err)
	}
}

func TestAnEndpointByTLSWantsACredential(t *testing.T) {
	if _, _, err := api.Dial("https://127.0.0.1:1"); !errors.Is(err, api.ErrNeedsCredential) {
		t.Errorf("%v", err)
	}
}
