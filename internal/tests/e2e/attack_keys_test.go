package e2e

import (
	"crypto/ed25519"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// A certificate's validity, in seconds since 1970.
type validity struct{ from, to int64 }

var (
	valid   = validity{0, 1 << 40}
	expired = validity{0, time.Now().Unix() - 3600}
)

// nowhere is a locator of rb's block that no host has.
func (m *mobile) nowhere() sid.Locator {
	return sid.LocatorOf(m.lab.Plan().Prefix(m.lab.Plan().Node("rb")).Addr()) | 0xfe
}

// member are the keys of some other host of the network, which has that locator and no other.
func (m *mobile) member(place sid.Locator) *session.Keys {
	return keysOf(ed25519.NewKeyFromSeed([]byte("the thief's, of 32 bytes in all ")), attacked.key, valid, place)
}

func keysOf(host, network ed25519.PrivateKey, v validity, places ...sid.Locator) *session.Keys {
	k := &session.Keys{Host: host, Certificates: map[sid.Locator]msg.Certificate{}}
	for _, l := range places {
		k.Certificates[l] = msg.Certify(network, host.Public().(ed25519.PublicKey), l, v.from, v.to)
	}
	return k
}

// hostKey is a host's own.
func (m *mobile) hostKey(host string) ed25519.PrivateKey {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.lab.ProgramDir(host, "state"), "key"))
	if err != nil {
		m.t.Fatal(err)
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		m.t.Fatalf("the key of %s: %q, %v", host, text, err)
	}
	return ed25519.NewKeyFromSeed(seed)
}

// An end is one of a flow as somebody on the path knows it.
type end struct {
	host         string // its own
	local, peer  netip.Addr
	stable       netip.Addr
	server       bool
	moves, other uint32 // of this end, of the other one
}

func (e end) at() sid.Locator      { return sid.LocatorOf(e.local) }
func (e end) id() sid.SocketID     { return sid.SocketID(sid.Low(e.local)) }
func (e end) peerID() sid.SocketID { return sid.SocketID(sid.Low(e.peer)) }

// claim says that the end is under another socketID now.
func (e end) claim() msg.Claim {
	return msg.Claim{Stable: e.stable, Server: e.server, Epoch: e.moves + 1, Seen: e.other,
		Socket: sid.NewSocketID(0xbad), Quote: e.peerID(), Chain: []sid.SocketID{e.id()}}
}

// rsyn is one of the three messages of a move, from the end to its peer, not signed.
func (e end) rsyn(kind msg.Type, at, old sid.Locator) msg.Renegotiate {
	return msg.Renegotiate{Kind: kind, Locator: at, Old: old, Claims: []msg.Claim{e.claim()}}
}

// fail says that the end serves the flow no more.
func (e end) fail(at sid.Locator) msg.FlowFail {
	return msg.FlowFail{Locator: at, Reason: msg.ProcessDied, Flows: []msg.Failed{{Stable: e.stable, Epoch: e.other,
		Server: e.server, Socket: e.peerID(), Quote: e.id()}}}
}
