package load

import (
	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/packet/checksum"
)

// A Level is a load as packets carry it: a codepoint of ECN.
type Level uint8

// The levels.
const (
	Unmarked Level = iota // the sender does not take part
	Low                   // below 80 %: grow by a factor
	High                  // 80 to 100 %: grow by steps
	Overload              // shrink
)

// highLoad is where the high level begins, after the paper.
const highLoad = 0.8

func levelOf(load float64) Level {
	switch {
	case load < highLoad:
		return Low
	case load < 1:
		return High
	}
	return Overload
}

func (l Level) String() string { return [...]string{"unmarked", "low", "high", "overload"}[l&3] }

// levelIn reads a packet's mark.
func levelIn(ip []byte, six bool) Level {
	if six {
		return Level(ip[1] >> 4 & 3)
	}
	return Level(ip[1] & 3)
}

// raise writes a level into a packet that takes part and has a lower one.
func raise(r *emu.Router, p *emu.Packet, to Level) {
	old := levelIn(r.Bytes(p), p.IPv6())
	if old == Unmarked || old >= to {
		return
	}
	ip, ok := r.Edit(p)
	switch {
	case !ok:
	case p.IPv6():
		ip[1] = ip[1]&^0x30 | byte(to)<<4
	default:
		ip[1] = ip[1]&^3 | byte(to)
		checksum.Update(ip[10:], uint16(old), uint16(to))
	}
}
