package trust

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// A Role says what a member of the network may do.
type Role string

// The roles. Nobody gets Controller for a token: it is of those who have the network's key.
const (
	Host       Role = "host"
	Router     Role = "router"
	Admin      Role = "admin"
	Agent      Role = "agent" // of boost
	Controller Role = "controller"
)

// WithArticle is the role with its article, for messages: "a host", "an agent of boost".
func (r Role) WithArticle() string {
	switch r {
	case Admin:
		return "an administrator"
	case Agent:
		return "an agent of boost"
	}
	return "a " + string(r)
}

// ParseRole reads a role that a token can give.
func ParseRole(s string) (Role, error) {
	switch r := Role(s); r {
	case Host, Router, Admin, Agent:
		return r, nil
	}
	return "", fmt.Errorf("role %.40q: want host, router, admin or agent", s)
}

// An Identity is what a certificate says of its holder.
type Identity struct {
	Role Role
	Name string
	Key  ed25519.PublicKey
}

func (i Identity) String() string { return string(i.Role) + " " + i.Name }

// scheme of the URI by which certificates name their holder: scaffold://NETWORK/ROLE/NAME.
const scheme = "scaffold"

func nameURI(network string, role Role, name string) *url.URL {
	return &url.URL{Scheme: scheme, Host: network, Path: "/" + string(role) + "/" + name}
}

var errNoIdentity = errors.New("the certificate names no member of a network")

// identityOf reads the name of a certificate's holder.
func identityOf(c *x509.Certificate) (Identity, error) {
	key, ok := c.PublicKey.(ed25519.PublicKey)
	if !ok || len(c.URIs) != 1 || c.URIs[0].Scheme != scheme {
		return Identity{}, errNoIdentity
	}
	role, name, ok := strings.Cut(strings.TrimPrefix(c.URIs[0].Path, "/"), "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return Identity{}, errNoIdentity
	}
	return Identity{Role: Role(role), Name: name, Key: key}, nil
}

// A Pin is the SHA-256 of a network's public key: what a token carries of it.
type Pin [sha256.Size]byte

// PinOf is the key's.
func PinOf(key ed25519.PublicKey) Pin { return sha256.Sum256(key) }

// String is long enough to tell networks apart for people.
func (p Pin) String() string { return hex.EncodeToString(p[:8]) }
