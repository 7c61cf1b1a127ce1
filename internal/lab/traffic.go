package lab

import (
	"github.com/vishvananda/netlink"
)

// LineTraffic counts one direction of a link since it was made.
type LineTraffic struct {
	Packets uint64 `json:"packets"` // that passed
	Bytes   uint64 `json:"bytes"`   // of them, whole Ethernet frames without checksum
	Lost    uint64 `json:"lost"`    // packets: lost or dropped by the link, or refused at its far end

	Rate uint64 `json:"rate_bit_s,omitempty"` // that it has now at most; 0 is no limit
}

// LinkTraffic is what one link carries.
type LinkTraffic struct {
	Ends  [2]string      `json:"ends"`
	State string         `json:"state"` // as in LinkStatus
	Lines [2]LineTraffic `json:"lines"` // Lines[0] from Ends[0] to Ends[1]
}

// Traffic counts what each link carries, in the order of the file.
func (l *Lab) Traffic() ([]LinkTraffic, error) {
	w := newWirer()
	defer w.close()
	emulated, err := l.Emulated()
	if err != nil {
		emulated = nil // its links are down, which is what is shown
	}
	all := make([]LinkTraffic, 0, len(l.plan.Cable))
	for i, c := range l.plan.Cable {
		t := LinkTraffic{Ends: c.Ends, State: linkState(w, c, emulated.cable(i))}
		for way := range c.Ends {
			if c.Nodes[way].Kind.namespace() {
				t.Lines[way] = w.sent(c.Nodes[way].Netns, c.Ports[way].Dev)
			}
			t.Lines[way].Rate = c.Rate
		}
		if e := emulated.cable(i); e != nil {
			t.Lines = e.traffic()
		}
		all = append(all, t)
	}
	return all, nil
}

// sent counts what an interface sends, nothing for one that is not there.
func (w *wirer) sent(ns, dev string) (t LineTraffic) {
	e, err := w.at(ns)
	if err != nil {
		return t
	}
	link, err := e.link.LinkByName(dev)
	if err != nil {
		return t
	}
	if s := link.Attrs().Statistics; s != nil {
		t = LineTraffic{Packets: s.TxPackets, Bytes: s.TxBytes, Lost: s.TxDropped}
	}
	t.Lost += queueDrops(e.link, link)
	return t
}

// queueDrops counts what the queues before an interface dropped, as that of a link that is cut.
func queueDrops(h *netlink.Handle, link netlink.Link) (drops uint64) {
	queues, err := h.QdiscList(link)
	if err != nil {
		return 0
	}
	for _, q := range queues {
		if s := q.Attrs().Statistics; s != nil && s.Queue != nil && q.Attrs().Parent == netlink.HANDLE_ROOT {
			drops += uint64(s.Queue.Drops)
		}
	}
	return drops
}

func (e EmulatedLinks) cable(number int) *EmulatedLink {
	for i := range e {
		if e[i].cable == number {
			return &e[i]
		}
	}
	return nil
}

func (e *EmulatedLink) traffic() (lines [2]LineTraffic) {
	for i, l := range e.Lines {
		c := l.Counters
		lines[i] = LineTraffic{
			Packets: c.Passed, Bytes: c.PassedByte,
			Lost: c.Lost + c.LostBurst + c.Overflow + l.Cut + l.Refused + l.Starved,
			Rate: l.Params.Rate,
		}
	}
	return lines
}
