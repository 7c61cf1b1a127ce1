package mrt

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/packet/mrt"
)

// A Record is one update of BGP as a collector saw it.
type Record struct {
	Time time.Time  // when it came; of a dumped table, when that was dumped
	Peer netip.Addr // who said it
	AS   uint32     // of the peer

	update *bgp.BGPUpdate
}

// A Reader reads recordings: updates (BGP4MP, also with microseconds) and tables (TABLE_DUMP_V2) of unicast
// routes. Records of other types are counted and left out.
type Reader struct {
	Unknown int   // records of types that hold no such update
	Bad     int   // records that are damaged inside
	First   error // the first of these

	in      *bufio.Reader
	number  int // of the record that was read last, from 1
	offset  int64
	peers   []*mrt.Peer // of the table that follows
	waiting []Record    // of a table's entry, which holds what several peers said
}

// NewReader reads from in, which is not compressed.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, 1<<16)} }

// maxRecord bounds a record. The longest that are real, tables of peers, take some 100 kB.
const maxRecord = 1 << 24

// Next returns the next update, io.EOF at the end, or an error where the file cannot be followed further.
func (r *Reader) Next() (Record, error) {
	for len(r.waiting) == 0 {
		header, body, err := r.record()
		if err != nil {
			return Record{}, err
		}
		if err := r.take(header, body); err != nil {
			r.Bad++
			if r.First == nil {
				r.First = fmt.Errorf("record %d at byte %d: %w", r.number, r.offset, err)
			}
		}
	}
	next := r.waiting[0]
	r.waiting = r.waiting[1:]
	return next, nil
}

// record reads the header and body of a record. What the header's extension holds is in the header.
func (r *Reader) record() (*mrt.MRTHeader, []byte, error) {
	raw := make([]byte, mrt.MRT_COMMON_HEADER_LEN)
	switch _, err := io.ReadFull(r.in, raw); {
	case err == io.EOF:
		return nil, nil, err
	case err != nil:
		return nil, nil, r.cut(err)
	}
	r.number++
	size := binary.BigEndian.Uint32(raw[8:])
	if size > maxRecord {
		return nil, nil, fmt.Errorf("record %d at byte %d says that it has %d bytes: this is no MRT file, or a compressed one; unpack it first", r.number, r.offset, size)
	}
	raw = append(raw, make([]byte, size)...)
	if _, err := io.ReadFull(r.in, raw[mrt.MRT_COMMON_HEADER_LEN:]); err != nil {
		return nil, nil, r.cut(err)
	}
	header, err := mrt.ParseHeader(raw)
	if err != nil {
		return nil, nil, r.cut(err)
	}
	body := raw[mrt.MRT_COMMON_HEADER_LEN:]
	if header.Type.HasExtendedTimestamp() {
		body = body[4:] // ParseHeader has seen that they are there
	}
	r.offset += int64(len(raw))
	return header, body, nil
}

func (r *Reader) cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it is cut off")
	}
	return fmt.Errorf("record %d at byte %d: %w", max(r.number, 1), r.offset, err)
}

// take keeps what a record holds in waiting.
func (r *Reader) take(h *mrt.MRTHeader, body []byte) error {
	switch {
	case h.Type == mrt.BGP4MP_ET:
		h.Type = mrt.BGP4MP
	case h.Type != mrt.BGP4MP && h.Type != mrt.TABLE_DUMPv2:
		r.Unknown++
		return nil
	}
	h.Len = uint32(len(body))
	m, err := mrt.ParseBody(body, h)
	if err != nil {
		return err
	}
	switch b := m.Body.(type) {
	case *mrt.BGP4MPMessage:
		r.message(h.GetTime(), b)
	case *mrt.PeerIndexTable:
		r.peers = b.Peers
	case *mrt.Rib:
		return r.entries(h.GetTime(), b)
	default:
		r.Unknown++
	}
	return nil
}

func (r *Reader) message(at time.Time, m *mrt.BGP4MPMessage) {
	update, ok := m.BGPMessage.Body.(*bgp.BGPUpdate)
	if !ok {
		r.Unknown++
		return
	}
	r.waiting = append(r.waiting, Record{Time: at, Peer: m.PeerIpAddress, AS: m.PeerAS, update: update})
}

// entries makes an update of what each peer said of a prefix.
func (r *Reader) entries(at time.Time, rib *mrt.Rib) error {
	if rib.Family != bgp.RF_IPv4_UC && rib.Family != bgp.RF_IPv6_UC {
		r.Unknown++
		return nil
	}
	for _, e := range rib.Entries {
		if int(e.PeerIndex) >= len(r.peers) {
			return fmt.Errorf("peer %d of a table with %d peers", e.PeerIndex, len(r.peers))
		}
		p := r.peers[e.PeerIndex]
		update := &bgp.BGPUpdate{PathAttributes: e.PathAttributes}
		if rib.Family == bgp.RF_IPv4_UC {
			update.NLRI = []bgp.PathNLRI{{NLRI: rib.Prefix}}
		}
		r.waiting = append(r.waiting, Record{Time: at, Peer: p.IpAddress, AS: p.AS, update: update})
	}
	return nil
}
