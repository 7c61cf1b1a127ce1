package switchd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"scaffold.dev/scaffold/internal/packet/header"
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
	etherLLDP      = 0x88cc
	tlvEnd         = 0
	tlvChassis     = 1
	tlvPort        = 2
	tlvTTL         = 3
	tlvOrganized   = 127
	chassisLocal   = 7
	portInterface  = 5
	advertisedFor  = 4 // seconds
	proofLen       = 16
	maxAdvertised  = 255 // bytes of a name
	headOfOurs     = "\x5c\xaf\x01\x02"
	madeLen        = 8
	lldpHeaderLen  = 2
	lldpLengthMask = 1<<9 - 1
)

var lldpGroup = [6]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e} // the nearest bridge

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
	b = append(append(b, lldpGroup[:]...), a.mac[:]...)
	b = binary.BigEndian.AppendUint16(b, etherLLDP)
	b = tlv(b, tlvChassis, []byte{chassisLocal}, []byte(a.router))
	b = tlv(b, tlvPort, []byte{portInterface}, []byte(a.port))
	b = tlv(b, tlvTTL, []byte{0, advertisedFor})
	b = tlv(b, tlvOrganized, []byte(headOfOurs), binary.BigEndian.AppendUint64(nil, a.made), s.proof(a))
	return tlv(b, tlvEnd)
}

func tlv(b []byte, kind uint16, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = binary.BigEndian.AppendUint16(b, kind<<9|uint16(n))
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// parseAdvertisement reads a frame and checks its proof.
func parseAdvertisement(b []byte, s *seal) (a advertisement, err error) {
	if len(b) < header.EthernetLen || binary.BigEndian.Uint16(b[12:]) != etherLLDP {
		return a, errNotOurs
	}
	var proof []byte
	a.mac = [6]byte(b[6:12])
	for b = b[header.EthernetLen:]; len(b) >= lldpHeaderLen; {
		head := binary.BigEndian.Uint16(b)
		kind, n := head>>9, int(head&lldpLengthMask)
		if b = b[lldpHeaderLen:]; n > len(b) {
			return a, fmt.Errorf("a TLV of %d bytes, %d are left: %w", n, len(b), errNotOurs)
		}
		value := b[:n]
		b = b[n:]
		switch {
		case kind == tlvEnd:
			b = nil
		case kind == tlvChassis && n > 1 && n <= maxAdvertised && value[0] == chassisLocal:
			a.router = string(value[1:])
		case kind == tlvPort && n > 1 && n <= maxAdvertised && value[0] == portInterface:
			a.port = string(value[1:])
		case kind == tlvOrganized && n == len(headOfOurs)+madeLen+proofLen && string(value[:len(headOfOurs)]) == headOfOurs:
			a.made, proof = binary.BigEndian.Uint64(value[len(headOfOurs):]), value[len(headOfOurs)+madeLen:]
		}
	}
	if a.router == "" || a.port == "" || !hmac.Equal(proof, s.proof(a)) {
		return advertisement{}, errNotOurs
	}
	return a, nil
}
