package boostd

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/linux/durable"
)

// pemKey is the type of a private key's block, RFC 5958.
const pemKey = "PRIVATE KEY"

// Key is an agent's private key; where there is none at the path it is made. made says that it was.
func Key(path string) (key ed25519.PrivateKey, made bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(path)
		return key, true, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("the agent's key: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, fmt.Errorf("the agent's key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, false, fmt.Errorf("the agent's key %s can be read by others: chmod 600 it, and where others have read it remove it for another one", path)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemKey {
		return nil, false, fmt.Errorf("%s holds no private key: expected a block %q of PEM", path, pemKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, false, fmt.Errorf("the agent's key %s: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, false, fmt.Errorf("the agent's key %s: expected one of Ed25519", path)
	}
	return key, false, nil
}

func makeKey(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the agent's key: %w", err)
	}
	if err := durable.Create(path, pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), 0o600); err != nil {
		return nil, fmt.Errorf("make the agent's key: %w", err)
	}
	return key, nil
}

// Public is a key's other half, as files of other agents have it.
func Public(key ed25519.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
}

// certificate carries the key to the other end of TLS. It says nothing else, and nobody looks at its dates: a machine's
// clock may be wrong.
func certificate(key ed25519.PrivateKey) (tls.Certificate, error) {
	in := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, in, in, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// errUnknownKey says that the other end has a key of no agent that it could be.
var errUnknownKey = errors.New("its key is that of no agent that this one was told of, or not of the one that was called")

// A ring are the keys of the agents that there are now. It is safe for use by several goroutines.
type ring struct {
	mu  sync.Mutex
	all []Other
}

func (r *ring) set(all []Other) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = all
}

func (r *ring) now() []Other {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// only is the agent of that name, if there is one.
func (r *ring) only(name string) []Other {
	all := r.now()
	i := slices.IndexFunc(all, func(o Other) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return all[i : i+1]
}

// server is TLS of a door: who calls is to have a key of those that there are, and is shown the one of this agent that it
// knows.
func (r *ring) server(own *shown) *tls.Config {
	c := r.config(r.now)
	c.ClientAuth = tls.RequireAnyClientCert
	c.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return own.known(h.ServerName), nil }
	return c
}

// client is TLS towards the agent of that name, after so many connections that came to nothing.
func (r *ring) client(own *shown, name string, failed int) *tls.Config {
	only := r.only(name)
	c := r.config(func() []Other { return only })
	if len(only) > 0 {
		c.ServerName = serverName(only[0].Key)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.try(failed), nil }
	return c
}

// config is what both ends have in common: the other one's key is to be among those that are allowed at the time.
func (*ring) config(allowed func() []Other) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // there is no chain: VerifyConnection compares keys
		VerifyConnection: func(c tls.ConnectionState) error {
			_, err := nameOf(c, allowed())
			return err
		},
		SessionTicketsDisabled: true, // each control connection shows that the key is there
	}
}

// nameOf is whose key the other end has shown.
func nameOf(c tls.ConnectionState, among []Other) (string, error) {
	if len(c.PeerCertificates) == 1 {
		if key, ok := c.PeerCertificates[0].PublicKey.(ed25519.PublicKey); ok {
			for _, o := range among {
				if bytes.Equal(key, o.Key) {
					return o.Name, nil
				}
			}
		}
	}
	return "", errUnknownKey
}
