package oftables

import (
	"bytes"
	"fmt"
	"net/netip"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// An outcome is what becomes of a packet.
type outcome struct {
	punted bool
	id     uint32 // of what punted it
	expire bool   // the switch says that its hop limit has ended
	port   ofp.Port
	frame  frame // that leaves
}

// A walk is a packet on its way through a model's tables.
type walk struct {
	*model
	f        frame
	in       ofp.Port
	metadata uint64
	over     []outcome
}

// walk gives all that may become of a packet: a group's buckets may all be chosen. None: it is dropped.
func (m *model) walk(in ofp.Port, f frame) []outcome {
	w := &walk{model: m, f: f, in: in}
	w.lookup(0)
	return w.over
}

func (w *walk) lookup(table uint8) {
	var best *ofp.Flow
	for _, f := range w.flows {
		if f.Table == table && (best == nil || f.Priority > best.Priority) && w.matches(f.Match) {
			best = &f
		}
	}
	if best == nil {
		return
	}
	next, on := uint8(0), false
	for _, i := range best.Instructions {
		switch i := i.(type) {
		case ofp.ApplyActions:
			if !w.apply(i.Actions, best.Cookie) {
				return
			}
		case ofp.WriteMetadata:
			w.metadata = w.metadata&^i.Mask | i.Metadata&i.Mask
		case ofp.GotoTable:
			next, on = i.Table, true
		case ofp.MeterInstruction:
		default:
			panic(fmt.Sprintf("%T", i))
		}
	}
	if on {
		w.lookup(next)
	}
}

// apply reports whether the packet goes on.
func (w *walk) apply(as []ofp.Action, cookie uint64) bool {
	for _, a := range as {
		switch a := a.(type) {
		case ofp.DecTTL:
			if w.f.hopLimit <= 1 {
				w.over = append(w.over, outcome{expire: true})
				return false
			}
			w.f.hopLimit--
		case ofp.SetField:
			w.set(a.OXM)
		case ofp.Output:
			w.output(a.Port, cookie)
		case ofp.Group:
			for _, b := range w.groups[a.ID].Buckets {
				copied := *w
				copied.over = nil
				copied.apply(b.Actions, cookie)
				w.over = append(w.over, copied.over...)
			}
		case ofp.Resubmit:
			w.lookup(a.Table)
		case ofp.MeterAction:
		default:
			panic(fmt.Sprintf("%T", a))
		}
	}
	return true
}

func (w *walk) output(p ofp.Port, cookie uint64) {
	_, id, _ := Punted(cookie)
	switch p {
	case ofp.PortController:
		w.over = append(w.over, outcome{punted: true, id: id})
	case ofp.PortIn:
		w.over = append(w.over, outcome{port: w.in, frame: w.f})
	case w.in: // a switch does not
	default:
		w.over = append(w.over, outcome{port: p, frame: w.f})
	}
}

func (w *walk) set(o ofp.OXM) {
	switch o.Field {
	case ofp.EthDst:
		w.f.to = o.HW()
	case ofp.EthSrc:
		w.f.from = o.HW()
	case ofp.IPv6Dst:
		old, value, mask := w.f.dst.As16(), o.Value(), o.Mask()
		for i := range old {
			if mask == nil {
				old[i] = value[i]
			} else {
				old[i] = old[i]&^mask[i] | value[i]
			}
		}
		w.f.dst = netip.AddrFrom16(old)
	default:
		panic(o.Field)
	}
}

func (w *walk) matches(m ofp.Match) bool {
	for _, o := range m {
		var have ofp.OXM
		f := w.f
		switch o.Field {
		case ofp.InPort:
			have = ofp.Uint(o.Field, uint64(w.in))
		case ofp.Metadata:
			have = ofp.Uint(o.Field, w.metadata)
		case ofp.EthDst:
			have = ofp.HW(o.Field, f.to)
		case ofp.EthType:
			have = ofp.Uint(o.Field, etherIPv6)
		case ofp.VLANVID:
			have = untagged
		case ofp.IPv6Src:
			have = ofp.Addr(o.Field, f.src)
		case ofp.IPv6Dst:
			have = ofp.Addr(o.Field, f.dst)
		case ofp.IPv6Label:
			have = ofp.Uint(o.Field, uint64(f.label))
		case ofp.IPTTL:
			have = ofp.Uint(o.Field, uint64(f.hopLimit))
		case ofp.IPFrag:
			have = ofp.Uint(o.Field, min(uint64(f.fragment), 1))
		case ofp.IPProto:
			have = ofp.Uint(o.Field, uint64(f.proto))
			if f.fragment>>3 != 0 {
				have = ofp.Uint(o.Field, fragmentHeader)
			}
		case ofp.TCPDst, ofp.UDPDst, ofp.ICMPv6Type:
			have = ofp.Uint(o.Field, uint64(f.dport))
			if f.fragment != 0 {
				have = ofp.Uint(o.Field, 0)
			}
			if f.proto != map[ofp.Field]sid.Proto{ofp.TCPDst: sid.TCP, ofp.UDPDst: sid.UDP, ofp.ICMPv6Type: sid.ICMPv6}[o.Field] {
				return false
			}
		default:
			panic(o.Field)
		}
		v, mask := have.Value(), o.Mask()
		for i := range v {
			if mask != nil {
				v[i] &= mask[i]
			}
		}
		if !bytes.Equal(v, o.Value()) {
			return false
		}
	}
	return true
}
