package checked

import (
	"encoding/binary"
	"net"
	"slices"

	"scaffold.dev/scaffold/bench/agent"
)

// A datagram is a head and then bytes of the flow's pattern from the position sequence number × bodyLen.
// Its answer has the other direction's bytes, and the server's name after them.
const (
	datagramMagic = 0x5ca77010da7a64a8
	headLen       = 32 // magic, flow, seed, sequence number
	bodyLen       = 200
	datagramLen   = headLen + bodyLen
)

type datagram struct{ flow, seed, seq uint64 }

func (d datagram) append(b []byte, p Pattern) []byte {
	for _, v := range [...]uint64{datagramMagic, d.flow, d.seed, d.seq} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, make([]byte, bodyLen)...)
	p.Fill(b[len(b)-bodyLen:], d.seq*bodyLen)
	return b
}

// parseDatagram reads the head and checks the rest; up tells which pattern it must have.
func parseDatagram(b []byte, up bool) (d datagram, rest []byte, ok bool) {
	if len(b) < datagramLen || binary.BigEndian.Uint64(b) != datagramMagic {
		return d, nil, false
	}
	d = datagram{binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:])}
	p := Down(d.seed)
	if up {
		p = Up(d.seed)
	}
	return d, b[datagramLen:], p.Check(b[headLen:datagramLen], d.seq*bodyLen) < 0
}

// answer answers datagrams until the socket is closed.
func answer(pc net.PacketConn, log *Log) {
	buf := make([]byte, 65536)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		d, _, ok := parseDatagram(buf[:n], true)
		if !ok {
			log.note(Note{Kind: Wrong, At: agent.Now(), Proto: "udp", Flow: d.flow, Local: pc.LocalAddr().String(), Peer: from.String(), Err: "a datagram is not what was sent"})
			continue
		}
		pc.WriteTo(append(d.append(nil, Down(d.seed)), log.node...), from) //nolint:errcheck // a datagram may be lost anywhere
	}
}

// A tally tells which datagrams of a flow were answered.
type tally struct {
	open       []uint64 // asked and not answered, in order
	answered   uint64
	duplicates uint64
	newest     uint64 // that was answered
}

func (t *tally) ask(seq uint64) { t.open = append(t.open, seq) }

func (t *tally) answer(seq uint64) {
	i, found := slices.BinarySearch(t.open, seq)
	if !found {
		t.duplicates++
		return
	}
	t.answered++
	t.newest = max(t.newest, seq)
	t.open = slices.Delete(t.open, i, i+1)
}

// overtaken is how many have no answer though a later one has: what is under way is not lost.
func (t *tally) overtaken() int {
	n, _ := slices.BinarySearch(t.open, t.newest)
	return n
}
