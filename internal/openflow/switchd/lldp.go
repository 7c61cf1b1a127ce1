package switchd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	lldpframe "scaffold.dev/scaffold/internal/packet/lldp"
)

// An advertisement says which port of which switch a frame left by: LLDP, IEEE 802.1AB, with a type of our
// own that proves who made it. What hosts send does not make links.
//
//	destination 01:80:c2:00:00:0e, source, type 0x88cc
//	TLV 1 chassis ID, subtype 7 (local): the router's name
//	TLV 2 port ID, subtype 5 (interface name): the port's
//	TLV 3 time to live, seconds
//	TLV 127 organization 5c:af:01, subtype 2: when it was made, in intervals of the maker, 8 bytes; HMAC-SHA256 over
//	that, the source, name, 0, port, the first 16 bytes
//	TLV 0 end
type advertisement struct {
	router, port string
	mac          [6]byte // of the router, the frame's source
	made         uint64
}

const (
	advertisedFor = 4 // seconds
	proofLen      = 16
	maxAdvertised = 255 // bytes of a name
	headOfOurs    = "\x5c\xaf\x01\x02"
	madeLen       = 8
)

var errNotOurs = errors.New("not an advertisement of this controller")

// A seal is the key of the proofs, made anew by each process.
type seal [32]byte

func (s *seal) proof(a advertisement) []byte {
	h := hmac.New(sha256.New, s[:])
	h.Write(binary.BigEndian.AppendUint64(nil, a.made))
	h.Write(a.mac[:])
	h.Write([]byte(a.router + "\x00" + a.port))
	return h.Sum(nil)[:proofLen]
}

// append is the frame that the switch is to send.
func (a advertisement) append(b []byte, s *seal) []byte {
	b = lldpframe.AppendHeader(b, a.mac)
	b = lldpframe.AppendTLV(b, lldpframe.ChassisID, []byte{lldpframe.ChassisLocal}, []byte(a.router))
	b = lldpframe.AppendTLV(b, lldpframe.PortID, []byte{lldpframe.PortInterface}, []byte(a.port))
	b = lldpframe.AppendTLV(b, lldpframe.TTL, []byte{0, advertisedFor})
	b = lldpframe.AppendTLV(b, lldpframe.Organization, []byte(headOfOurs), binary.BigEndian.AppendUint64(nil, a.made), s.proof(a))
	return lldpframe.AppendTLV(b, lldpframe.End)
}

// parseAdvertisement reads a frame and checks its proof.
func parseAdvertisement(b []byte, s *seal) (a advertisement, err error) {
	var proof []byte
	err = lldpframe.Each(b, func(kind lldpframe.Kind, value []byte) {
		n := len(value)
		switch {
		case kind == lldpframe.ChassisID && n > 1 && n <= maxAdvertised && value[0] == lldpframe.ChassisLocal:
			a.router = string(value[1:])
		case kind == lldpframe.PortID && n > 1 && n <= maxAdvertised && value[0] == lldpframe.PortInterface:
			a.port = string(value[1:])
		case kind == lldpframe.Organization && n == len(headOfOurs)+madeLen+proofLen && string(value[:len(headOfOurs)]) == headOfOurs:
			a.made, proof = binary.BigEndian.Uint64(value[len(headOfOurs):]), value[len(headOfOurs)+madeLen:]
		}
	})
	if err != nil {
		return advertisement{}, fmt.Errorf("%w: %w", errNotOurs, err)
	}
	a.mac = [6]byte(b[6:12])
	if a.router == "" || a.port == "" || !hmac.Equal(proof, s.proof(a)) {
		return advertisement{}, errNotOurs
	}
	return a, nil
}
