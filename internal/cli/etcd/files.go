package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Files are the files by which one end of a connection shows who it is and knows the other one.
type Files struct{ CA, Cert, Key string }

// Add gives a command the flags of the files for an etcd.
func (p *Files) Add(set *pflag.FlagSet) {
	set.StringVar(&p.CA, "etcd-ca", "", "certificates (PEM) of those who may vouch for that etcd")
	set.StringVar(&p.Cert, "etcd-cert", "", "certificate (PEM) to show to it")
	set.StringVar(&p.Key, "etcd-key", "", "its private key (PEM)")
}

// Config reads the files; of is how the flags begin.
func (p Files) Config(of string, endpoints []string) (*tls.Config, error) {
	secure := false
	for _, e := range endpoints {
		secure = secure || strings.HasPrefix(e, "https://")
	}
	if p == (Files{}) && !secure {
		return nil, nil
	}
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("--%s-ca, --%s-cert and --%s-key without --%s", of, of, of, of)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.CA != "" {
		pem, err := os.ReadFile(p.CA)
		if err != nil {
			return nil, fmt.Errorf("--%s-ca: %w", of, err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--%s-ca %s: no certificate in it", of, p.CA)
		}
	}
	if (p.Cert == "") != (p.Key == "") {
		return nil, fmt.Errorf("--%s-cert and --%s-key go together", of, of)
	}
	if p.Cert != "" {
		pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
		if err != nil {
			return nil, fmt.Errorf("--%s-cert, --%s-key: %w", of, of, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
