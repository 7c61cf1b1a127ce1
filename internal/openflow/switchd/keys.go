package switchd

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/openflow/ofconn"
)

// In a network with keys a switch is a router that shows no key of the network. So it is one that --switch names, and it
// shows that it is that one by its own certificate, docs/protocol.md §5.10.

// RequireKeys says what is wrong with a Config in a network with keys, and has the daemon take only switches that are listed,
// with certificates that are theirs.
func (c *Config) RequireKeys() error {
	for _, target := range c.Listen {
		if strings.HasPrefix(target, "tcp:") && !c.Clear {
			return fmt.Errorf("--openflow %s: this network has keys, and by tcp whoever reaches that address, or is on the way, could be a switch, and a switch is a router: want ssl:%s with --openflow-cert, --openflow-key and --openflow-ca, or unix:FILE; where nobody but switches reaches the address, say --openflow-clear", target, strings.TrimPrefix(target, "tcp:"))
		}
	}
	if len(c.Listen) > 0 && len(c.Switches) == 0 {
		return errors.New("--openflow without --switch: in a network with keys a switch is a router only if it is listed: want --switch NAME=DATAPATHID for each")
	}
	c.keys, c.OnlyListed = true, true
	return nil
}

// certified says what speaks against a switch that is listed being the one at the other end.
func (d *daemon) certified(c *ofconn.Conn, s Switch) error {
	cert := c.PeerCertificate()
	switch {
	case s.Cert != "" && cert == nil:
		return fmt.Errorf("switch %s is listed with a certificate, and this one shows none: it is to connect by ssl", s.Name)
	case s.Cert != "" && fingerprint(cert) != s.Cert:
		return fmt.Errorf("switch %s is listed with the certificate %s, and this one shows %s", s.Name, s.Cert, fingerprint(cert))
	case s.Cert != "" || cert == nil || !d.cfg.keys || madeFor(cert, s):
		return nil
	}
	return fmt.Errorf("the certificate is for %q, and the datapath id %016x is that of switch %s: want a certificate for %s or %016x, or say that this is its: --switch %s=%016x,cert=%s",
		cert.Subject.CommonName, s.Datapath, s.Name, s.Name, s.Datapath, s.Name, s.Datapath, fingerprint(cert))
}

// madeFor reports whether a certificate is for the switch: by its name or its datapath id, as the common name, as ovs-pki
// writes that ("NAME id:UUID"), or as a DNS name.
func madeFor(cert *x509.Certificate, s Switch) bool {
	common, _, _ := strings.Cut(cert.Subject.CommonName, " id:")
	return slices.ContainsFunc(append([]string{common}, cert.DNSNames...), func(n string) bool {
		return n == s.Name || strings.EqualFold(n, fmt.Sprintf("%016x", s.Datapath))
	})
}

// fingerprint is the SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` has it, without colons.
func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// parseFingerprint reads one, with colons or without.
func parseFingerprint(text string) (string, error) {
	plain := strings.ToLower(strings.ReplaceAll(text, ":", ""))
	if b, err := hex.DecodeString(plain); err != nil || len(b) != sha256.Size {
		return "", fmt.Errorf("cert=%.80q: want the SHA-256 of the switch's certificate in hexadecimal, as openssl x509 -noout -fingerprint -sha256 shows it", text)
	}
	return plain, nil
}
