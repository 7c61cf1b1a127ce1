package names

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Access is who may serve a service, and who may connect to it. The zero Access lets everybody.
type Access struct {
	Key     []byte   `json:"key,omitempty"`     // the service's Ed25519 public key: instances show a permit of it
	Servers []string `json:"servers,omitempty"` // who may serve: HOST, or HOST:USER for one user's programs there; none: any host
	Allow   []string `json:"allow,omitempty"`   // who may connect, as ParseAllowed reads it; none: everybody
}

// MaxListed is how many entries a list of servers or of clients may have.
const MaxListed = 1024

// Nobody alone in the list of those who may connect lets nobody.
const Nobody = "none"

// ServicePrefix tells the hosts of a service from a host in a list of those who may connect.
const ServicePrefix = "service:"

// An Allowed is one entry of those who may connect: one of the three.
type Allowed struct {
	Host    string
	Service string       // the hosts that serve it
	Prefix  netip.Prefix // of locators
}

// ParseAllowed reads a host's name, service:NAME or a locator prefix.
func ParseAllowed(text string) (Allowed, error) {
	if name, ok := strings.CutPrefix(text, ServicePrefix); ok {
		clean, err := CleanService(name, "")
		return Allowed{Service: clean}, err
	}
	if strings.ContainsAny(text, ":/") {
		p, err := netip.ParsePrefix(text)
		if err != nil || !p.Addr().Is6() || p.Bits() > 64 {
			return Allowed{}, fmt.Errorf("%.60q: want a host's name, service:NAME, or a prefix of locators of at most 64 bits such as fd5d:0:1:100::/56", text)
		}
		return Allowed{Prefix: p.Masked()}, nil
	}
	clean, err := Clean(text, "")
	if err != nil {
		return Allowed{}, fmt.Errorf("%.60q: want a host's name, service:NAME, or a prefix of locators", text)
	}
	return Allowed{Host: clean}, nil
}

// Forbidden reports whether nobody may connect: routers say so.
func (a Access) Forbidden() bool { return slices.Equal(a.Allow, []string{Nobody}) }

// Check says what is wrong with it.
func (a Access) Check() error {
	for _, c := range []func() error{a.checkKey, a.checkServers, a.checkAllow} {
		if err := c(); err != nil {
			return err
		}
	}
	return nil
}

func (a Access) checkKey() error {
	if len(a.Key) != 0 && len(a.Key) != ed25519.PublicKeySize {
		return fmt.Errorf("key of %d bytes: want an Ed25519 public key of %d", len(a.Key), ed25519.PublicKeySize)
	}
	return nil
}

func (a Access) checkServers() error {
	if len(a.Servers) > MaxListed {
		return fmt.Errorf("servers: %d hosts, at most %d", len(a.Servers), MaxListed)
	}
	for _, s := range a.Servers {
		host, user, one := strings.Cut(s, ":")
		if clean, err := Clean(host, ""); err != nil || clean != host || one && !isUser(user) {
			return fmt.Errorf("servers: %.60q: want a host's name, or HOST:USER", s)
		}
	}
	return nil
}

// isUser reports whether some system could have a user of that name: what no list or address can be mistaken for.
func isUser(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-$", r))
	})
}

// MayServe says why the programs of a user, "" where the host does not tell, may not serve on the host, or "".
func (a Access) MayServe(host, user string) string {
	users := []string{}
	for _, s := range a.Servers {
		at, only, one := strings.Cut(s, ":")
		if at != host {
			continue
		}
		if !one || only == user {
			return ""
		}
		users = append(users, only)
	}
	switch {
	case len(a.Servers) == 0:
		return ""
	case len(users) == 0:
		return "names the hosts that may serve it, and " + host + " is not among them"
	case user == "":
		return "names users of " + host + " that may serve it, and its hostd does not tell whose programs serve: it wants an upgrade"
	}
	return "lets programs of " + strings.Join(users, ", ") + " serve on " + host + ", and " + user + " is another"
}

func (a Access) checkAllow() error {
	if len(a.Allow) > MaxListed {
		return fmt.Errorf("allow: %d entries, at most %d: a prefix or service:NAME says many at once", len(a.Allow), MaxListed)
	}
	for _, s := range a.Allow {
		if s == Nobody && len(a.Allow) == 1 {
			continue
		}
		if s == Nobody {
			return fmt.Errorf("allow: %s stands alone or not at all", Nobody)
		}
		if _, err := ParseAllowed(s); err != nil {
			return fmt.Errorf("allow: %w", err)
		}
	}
	return nil
}

// Equal reports whether both say the same, in whatever order.
func (a Access) Equal(b Access) bool {
	return bytes.Equal(a.Key, b.Key) && SameList(a.Servers, b.Servers) && SameList(a.Allow, b.Allow)
}

// SameList compares lists whose order does not matter.
func SameList(a, b []string) bool { return slices.Equal(sortedSet(a), sortedSet(b)) }

func sortedSet(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// keyKind is what a key begins with in text.
const keyKind = "ed25519:"

// FormatKey is a public key as people see it.
func FormatKey(key []byte) string {
	if len(key) == 0 {
		return ""
	}
	return keyKind + base64.StdEncoding.EncodeToString(key)
}

// ParseKey reads what FormatKey wrote; "" is no key.
func ParseKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, keyKind))
	if err != nil || !strings.HasPrefix(text, keyKind) || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("key %.60q: want %s and 44 characters, as `scaffold service keygen` prints it", text, keyKind)
	}
	return key, nil
}
