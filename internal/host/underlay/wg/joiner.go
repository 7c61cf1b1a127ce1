package wg

import (
	"bytes"
	"encoding/binary"

	"scaffold.dev/scaffold/internal/packet/checksum"
)

// A joiner makes one large frame of segments that follow each other, so that the kernel has one packet to deal with
// where many came. What it joins it could be cut into again, bit by bit.
type joiner struct {
	bundles []bundle // in the order in which they began
}

// A bundle is a frame, and what was joined to it.
type bundle struct {
	head   []byte // vnetLength bytes of room, then the first frame
	parts  [][]byte
	header int // of all headers; 0: nothing can be joined to it
	size   int // payload of the first
	total  int // payload of all
	push   bool
	good   bool // its checksum was looked at
	open   bool
}

// maxBundle is what IPv6 can say of its payload.
const maxBundle = 0xffff

// add takes a frame with vnetLength bytes of room before it.
func (j *joiner) add(b []byte) {
	frame := b[vnetLength:]
	header, tcp := segment(frame)
	if tcp {
		for i := len(j.bundles) - 1; i >= 0; i-- {
			o := &j.bundles[i]
			if !o.open || !sameFlow(o.head[vnetLength:], frame) {
				continue
			}
			if header > 0 && o.takes(frame, header) {
				return
			}
			o.open = false // what comes of this flow comes after this frame
			break
		}
	}
	n := bundle{head: b, header: header}
	if header > 0 {
		n.size = len(frame) - header
		n.total, n.push = n.size, frame[afterIPv6+tcpFlags]&flagPSH != 0
		n.good, n.open = true, !n.push
	}
	if k := len(j.bundles); k < cap(j.bundles) { // with the room of before
		j.bundles = j.bundles[:k+1]
		n.parts = j.bundles[k].parts[:0]
		j.bundles[k] = n
		return
	}
	j.bundles = append(j.bundles, n)
}

// segment reports whether a frame is TCP over IPv6, and how long the headers are of one that can be joined: data, no
// flag but ACK and PSH, and a checksum that is right.
func segment(f []byte) (header int, tcp bool) {
	if len(f) < afterIPv6+tcpLength || binary.BigEndian.Uint16(f[etherType:]) != etherIPv6 || f[ipv6Next] != protoTCP {
		return 0, false
	}
	header = afterIPv6 + int(f[afterIPv6+tcpOffset]>>4)*4
	length := int(binary.BigEndian.Uint16(f[ipv6Payload:]))
	switch {
	case f[etherLength]>>4 != 6, header < afterIPv6+tcpLength, header >= len(f), afterIPv6+length != len(f),
		f[afterIPv6+tcpFlags]&^flagPSH != flagACK:
		return 0, true
	}
	if checksum.Fold(checksum.Add(uint64(length)+protoTCP, f[ipv6Source:])) != checksum.Good {
		return 0, true
	}
	return header, true
}

// sameFlow compares the addresses and ports of two frames of TCP.
func sameFlow(a, b []byte) bool {
	return bytes.Equal(a[ipv6Source:afterIPv6+4], b[ipv6Source:afterIPv6+4])
}

// takes joins a segment to the bundle, if it is the next.
func (o *bundle) takes(f []byte, header int) bool {
	h := o.head[vnetLength:]
	n := len(f) - header
	tcp := afterIPv6
	switch {
	case header != o.header, n > o.size, o.total%o.size != 0, header-afterIPv6+o.total+n > maxBundle,
		binary.BigEndian.Uint32(f[tcp+tcpSeq:]) != binary.BigEndian.Uint32(h[tcp+tcpSeq:])+uint32(o.total),
		!bytes.Equal(f[:ipv6Payload], h[:ipv6Payload]), !bytes.Equal(f[ipv6Next:ipv6Source], h[ipv6Next:ipv6Source]), // addresses are the same
		!bytes.Equal(f[tcp+8:tcp+tcpFlags], h[tcp+8:tcp+tcpFlags]),
		!bytes.Equal(f[tcp+14:tcp+tcpChecksum], h[tcp+14:tcp+tcpChecksum]),
		!bytes.Equal(f[tcp+18:header], h[tcp+18:header]):
		return false
	}
	o.parts = append(o.parts, f[header:])
	o.total += n
	if f[tcp+tcpFlags]&flagPSH != 0 {
		o.push, o.open = true, false
	}
	return true
}

// flush hands over each large frame, in pieces, and forgets them.
func (j *joiner) flush(write func(pieces [][]byte) error) (err error) {
	for i := range j.bundles {
		o := &j.bundles[i]
		o.close()
		pieces := append(o.parts, nil) //nolint:gocritic // its own room
		copy(pieces[1:], o.parts)
		pieces[0] = o.head
		if e := write(pieces); e != nil {
			err = e
		}
		clear(pieces)
		o.parts, o.head = pieces[:0], nil
	}
	j.bundles = j.bundles[:0]
	return err
}

// close writes the headers of what was joined.
func (o *bundle) close() {
	h := o.head[vnetLength:]
	v := vnet{}
	if o.good {
		v.flags = vnetSumGood
	}
	if len(o.parts) > 0 {
		tcp := afterIPv6
		length := o.header - tcp + o.total
		binary.BigEndian.PutUint16(h[ipv6Payload:], uint16(length))
		if o.push {
			h[tcp+tcpFlags] |= flagPSH
		}
		binary.BigEndian.PutUint16(h[tcp+tcpChecksum:], checksum.Fold(checksum.Add(uint64(length)+protoTCP, h[ipv6Source:tcp])))
		v = vnet{flags: vnetNeedsSum, gso: vnetTCP6, header: uint16(o.header), size: uint16(o.size), start: uint16(tcp), checksum: tcpChecksum}
	}
	v.write(o.head)
}
