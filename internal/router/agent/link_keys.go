package agent

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"sync"
	"sync/atomic"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/wire"
)

// LinkKeys are by what the routers of this process prove to their neighbours who they are, docs/protocol.md §4.2. The own
// key is made anew by each process and told to the controller on the router's stream, which vouches for it; the controller
// tells those of the others. Two routers have a secret that follows from both keys. It is safe for use by several goroutines.
type LinkKeys struct {
	own    *ecdh.PrivateKey
	serial atomic.Uint64 // of the last message

	mu     sync.Mutex
	listed bool // a controller has told who is in the network
	peers  map[string]*linkPeer
}

// A linkPeer is another router of the network.
type linkPeer struct {
	key    []byte // nil: it cannot prove anything
	id     uint32
	secret []byte // with our key, once it was needed
	bad    bool   // the key is one by which everybody has the same secret
}

// NewLinkKeys makes a key.
func NewLinkKeys() *LinkKeys {
	own, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return &LinkKeys{own: own, peers: map[string]*linkPeer{}}
}

// Public is the own key, for RouterJoin.
func (k *LinkKeys) Public() []byte { return k.own.PublicKey().Bytes() }

// Take learns from the controller who is in the network. It reports whether anything is new; nil is a controller that does
// not tell.
func (k *LinkKeys) Take(m *apiv1.RouterKeys) (news bool) {
	if m == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.peers
	if m.All {
		news = !k.listed
		k.listed, k.peers = true, make(map[string]*linkPeer, len(m.Routers))
	}
	for _, r := range m.Routers {
		old := before[r.Name]
		switch {
		case r.Gone:
			news = news || old != nil
			delete(k.peers, r.Name)
		case old != nil && bytes.Equal(old.key, r.LinkKey):
			k.peers[r.Name] = old
		default:
			news = true
			k.peers[r.Name] = &linkPeer{key: bytes.Clone(r.LinkKey), id: wire.KeyID(r.LinkKey)}
		}
	}
	return news || len(before) != len(k.peers)
}

// A standing is what a HELLO in a router's name is worth.
type standing int

const (
	believed      standing = iota // it counts: nobody tells who is in the network, or this router cannot prove anything
	provable                      // a LINK of that router counts instead
	unknownRouter                 // nothing: no router of the network is called so
)

func (k *LinkKeys) standing(name string) standing {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch p := k.peers[name]; {
	case !k.listed:
		return believed
	case p == nil:
		return unknownRouter
	case len(p.key) == 0:
		return believed
	}
	return provable
}

// told reports whether the controller tells who is in the network.
func (k *LinkKeys) told() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.listed
}

// sign completes a message of the router that it names, which leaves with the source address.
func (k *LinkKeys) sign(m *wire.Link, source netip.Addr) {
	m.KeyID, m.Serial = wire.KeyID(k.Public()), k.serial.Add(1)
	m.Proof = k.proof(*m, source, m.Name, m.Peer)
}

// verify reports whether the router that the message names made it for us, and sent it from the address.
func (k *LinkKeys) verify(m wire.Link, source netip.Addr) bool {
	k.mu.Lock()
	p := k.peers[m.Name]
	k.mu.Unlock()
	if p == nil || len(p.key) == 0 || p.bad || p.id != m.KeyID { // no more than a lookup
		return false
	}
	want := k.proof(m, source, m.Peer, m.Name)
	return want != [wire.ProofLen]byte{} && hmac.Equal(want[:], m.Proof[:])
}

// proof is over the message and its source address, by the secret of the routers own and peer; zero without one.
func (k *LinkKeys) proof(m wire.Link, source netip.Addr, own, peer string) (proof [wire.ProofLen]byte) {
	secret := k.secret(own, peer)
	if secret == nil {
		return proof
	}
	h := hmac.New(sha256.New, secret)
	at := source.As16()
	h.Write(at[:])
	h.Write(m.Proven(nil))
	copy(proof[:], h.Sum(nil))
	return proof
}

// secret is that of two routers, own one of this process. Names are in it, since a process may have several routers.
func (k *LinkKeys) secret(own, peer string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.peers[peer]
	if p == nil || len(p.key) == 0 || p.bad {
		return nil
	}
	if p.secret == nil {
		public, err := ecdh.X25519().NewPublicKey(p.key)
		if err == nil {
			p.secret, err = k.own.ECDH(public)
		}
		if p.bad = err != nil; p.bad {
			return nil
		}
	}
	h := hmac.New(sha256.New, p.secret)
	h.Write([]byte("scaffold link 1\x00"))
	ends := [2][]byte{append([]byte(own+"\x00"), k.Public()...), append([]byte(peer+"\x00"), p.key...)}
	if own > peer {
		ends[0], ends[1] = ends[1], ends[0]
	}
	h.Write(ends[0])
	h.Write(ends[1])
	return h.Sum(nil)
}
