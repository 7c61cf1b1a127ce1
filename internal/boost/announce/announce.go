package announce

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"scaffold.dev/scaffold/internal/packet/lldp"
)

// An Announcement says that an agent is behind the port of a switch where the frame came in: LLDP, IEEE 802.1AB, with a type
// of our own that proves who made it.
//
//	destination 01:80:c2:00:00:0e, source: the port's address, type 0x88cc
//	TLV 1 chassis ID, subtype 7 (local): the agent's name
//	TLV 2 port ID, subtype 5 (interface name): the port's, at the agent
//	TLV 3 time to live, seconds
//	TLV 127 organization 5c:af:01, subtype 3: number of the announcement, 8 bytes; HMAC-SHA256 over "boost agent", 0,
//	that, the source, the agent's name, 0, port, the first 16 bytes
//	TLV 0 end
type Announcement struct {
	Agent string
	Port  string  // name of the interface at the agent
	MAC   [6]byte // of that interface, the frame's source
	Made  uint64  // higher with each frame under a key, whatever port it leaves by
	Proof [ProofLen]byte
}

const (
	// KeyLen is how long a key is: the controller makes one for each stream of an agent.
	KeyLen = 32
	// ProofLen is how long a proof is.
	ProofLen = 16
	// MaxName is how long the names of agents and ports may be, in bytes.
	MaxName = 63
)

const (
	announcedFor = 4                  // seconds
	headOfOurs   = "\x5c\xaf\x01\x03" // subtype 2 are advertisements of switches (internal/openflow/switchd)
	domain       = "boost agent\x00"  // no other proof of Scaffold's is over bytes that begin so
	madeLen      = 8
)

// ErrNone says that a frame is no announcement: LLDP of others is ordinary.
var ErrNone = errors.New("no announcement of an agent of boost")

// Check says what is wrong with the names.
func (a *Announcement) Check() error {
	for _, name := range []string{a.Agent, a.Port} {
		if !sayable(name) {
			return fmt.Errorf("name %.80q: expected 1 to %d bytes of UTF-8 without control characters", name, MaxName)
		}
	}
	return nil
}

// sayable reports whether messages and logs can have a name as it is. It has no 0, which parts the names under the proof.
func sayable(name string) bool {
	return name != "" && len(name) <= MaxName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// Append appends the whole frame, proved by a key of KeyLen bytes; what Proof holds does not matter. Names that Check
// refuses panic.
func (a Announcement) Append(b, key []byte) []byte {
	if err := a.Check(); err != nil {
		panic("announce: " + err.Error())
	}
	b = lldp.AppendHeader(b, a.MAC)
	b = lldp.AppendTLV(b, lldp.ChassisID, []byte{lldp.ChassisLocal}, []byte(a.Agent))
	b = lldp.AppendTLV(b, lldp.PortID, []byte{lldp.PortInterface}, []byte(a.Port))
	b = lldp.AppendTLV(b, lldp.TTL, []byte{0, announcedFor})
	b = lldp.AppendTLV(b, lldp.Organization, []byte(headOfOurs), binary.BigEndian.AppendUint64(nil, a.Made), a.proof(key))
	return lldp.AppendTLV(b, lldp.End)
}

// Parse reads a frame and believes it: whether its proof holds, Proves says.
func Parse(frame []byte) (a Announcement, err error) {
	ours := false
	err = lldp.Each(frame, func(kind lldp.Kind, value []byte) {
		switch n := len(value); {
		case kind == lldp.ChassisID && n > 1 && value[0] == lldp.ChassisLocal:
			a.Agent = string(value[1:])
		case kind == lldp.PortID && n > 1 && value[0] == lldp.PortInterface:
			a.Port = string(value[1:])
		case kind == lldp.Organization && n == len(headOfOurs)+madeLen+ProofLen && string(value[:len(headOfOurs)]) == headOfOurs:
			ours = true
			a.Made, a.Proof = binary.BigEndian.Uint64(value[len(headOfOurs):]), [ProofLen]byte(value[len(headOfOurs)+madeLen:])
		}
	})
	if err != nil || !ours || !sayable(a.Agent) || !sayable(a.Port) {
		return Announcement{}, ErrNone
	}
	a.MAC = [6]byte(frame[6:12])
	return a, nil
}

// Proves reports whether who made the announcement had the key. That it is new, its number says: higher than any that came
// under the key before.
func (a *Announcement) Proves(key []byte) bool {
	return len(key) == KeyLen && hmac.Equal(a.Proof[:], a.proof(key)) // a key that is missing would be one that everybody has
}

func (a *Announcement) proof(key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(domain))
	h.Write(binary.BigEndian.AppendUint64(nil, a.Made))
	h.Write(a.MAC[:])
	h.Write([]byte(a.Agent + "\x00" + a.Port))
	return h.Sum(nil)[:ProofLen]
}
