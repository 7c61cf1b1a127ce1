package wires

import "github.com/vishvananda/netlink"

// Counters are what an interface sent since it was made.
type Counters struct {
	Packets, Bytes uint64
	Lost           uint64 // packets: dropped by it or the queues before it
}

// Sent counts what an interface sends, nothing for one that is not there.
func (w *Wirer) Sent(ns, dev string) (t Counters) {
	e, err := w.at(ns)
	if err != nil {
		return t
	}
	link, err := e.link.LinkByName(dev)
	if err != nil {
		return t
	}
	if s := link.Attrs().Statistics; s != nil {
		t = Counters{Packets: s.TxPackets, Bytes: s.TxBytes, Lost: s.TxDropped}
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

// Bytes are those that an interface received and sent: none where it is not there, an error without its namespace.
func (w *Wirer) Bytes(ns, dev string) (received, sent uint64, err error) {
	e, err := w.at(ns)
	if err != nil {
		return 0, 0, err
	}
	link, err := e.link.LinkByName(dev)
	if err != nil || link.Attrs().Statistics == nil {
		return 0, 0, nil
	}
	s := link.Attrs().Statistics
	return s.RxBytes, s.TxBytes, nil
}
