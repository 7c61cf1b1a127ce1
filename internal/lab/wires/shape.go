package wires

import (
	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/emu"
)

// A link has a rate by a token bucket at each end. A link that is cut has a bucket too small for any
// packet, so that everything sent into it is lost while the carrier stays, as behind a dead switch.
const (
	rateHandle = 1 // major numbers of the two kinds of bucket, to tell them apart
	cutHandle  = 0xdead
	cutBurst   = 40 // bytes: an IPv6 header with nothing
)

// How much a bucket may hold: one GSO frame at least, and what passes in a tick of the clock.
const (
	minBurst  = 1 << 17
	queueTime = 20 // milliseconds of packets waiting, on top of the burst
)

// Shape gives an interface its rate, or none at rate 0.
func (w *Wirer) Shape(ns, dev string, rate uint64) error {
	if rate == 0 {
		return w.unshape(ns, dev)
	}
	bytes := rate / 8
	burst := max(minBurst, bytes/1000)
	queue := burst + bytes*queueTime/1000
	return w.bucket(ns, dev, rateHandle, bytes, burst, queue)
}

// Cut loses all that the interface sends.
func (w *Wirer) Cut(ns, dev string) error {
	return w.bucket(ns, dev, cutHandle, emu.MinRate/8, cutBurst, cutBurst)
}

func (w *Wirer) bucket(ns, dev string, major uint16, rate, burst, limit uint64) error {
	return w.change(ns, dev, "token bucket", func(h *netlink.Handle, l netlink.Link) error {
		return h.QdiscReplace(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{
				LinkIndex: l.Attrs().Index,
				Handle:    netlink.MakeHandle(major, 0),
				Parent:    netlink.HANDLE_ROOT,
			},
			Rate:   rate,
			Buffer: netlink.Xmittime(rate, uint32(burst)),
			Limit:  uint32(min(limit, 1<<31)),
		})
	})
}

func (w *Wirer) unshape(ns, dev string) error {
	return w.change(ns, dev, "remove token bucket", func(h *netlink.Handle, l netlink.Link) error {
		q, err := rootBucket(h, l)
		if q == nil || err != nil {
			return err
		}
		return h.QdiscDel(q)
	})
}

// rootBucket finds the token bucket of an interface, nil if it has none.
func rootBucket(h *netlink.Handle, l netlink.Link) (*netlink.Tbf, error) {
	all, err := h.QdiscList(l)
	for _, q := range all {
		if t, ok := q.(*netlink.Tbf); ok && t.Parent == netlink.HANDLE_ROOT {
			return t, nil
		}
	}
	return nil, err
}

// isCut reports whether the interface loses all that it sends.
func isCut(h *netlink.Handle, l netlink.Link) bool {
	q, err := rootBucket(h, l)
	return err == nil && q != nil && q.Handle == netlink.MakeHandle(cutHandle, 0)
}
