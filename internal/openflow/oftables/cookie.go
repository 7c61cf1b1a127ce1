package oftables

import "scaffold.dev/scaffold/internal/openflow/ofp"

// A cookie says whose an entry is: ours by its upper 16 bits, then the owner, then what the owner numbers.
const (
	cookieOurs uint64 = 0x5caf << 48
	cookieMask uint64 = 0xffff << 48
)

// Groups and meters have no cookies: ours are those in a range of numbers.
const (
	firstID = 0x5caf0000
	lastID  = 0x5cafffff
)

// What Scaffold's own entries punt: the ids of owner 0.
const (
	PuntNothing    uint32 = iota // entries that punt nothing
	PuntFirst                    // a first packet that was not resolved: unknown or forbidden, no instance, no such port
	PuntRetry                    // a first packet that instances returned, more than once or the only one
	PuntGone                     // for a locator that nobody is at any more
	PuntHopLimit                 // whose hop limit ends here
	PuntNoRoute                  // for an address of the network that no route leads to
	PuntOwn                      // Scaffold's messages (UDP 23727) to the router's own address
	PuntAddressed                // anything else to the router's own address
	PuntRedirected               // for a host that has moved, where the switch cannot write half an address
	PuntTooBig                   // that does not fit the port that it is to leave by, which its metadata names
	puntsUsed
)

// punts are the packets of each kind that a switch punts in a second. Probes' answers come 40 times a second
// from each host.
var punts = [puntsUsed]uint32{PuntFirst: 20000, PuntRetry: 5000, PuntGone: 1000, PuntHopLimit: 1000, PuntNoRoute: 1000,
	PuntOwn: 50000, PuntAddressed: 1000, PuntRedirected: 5000, PuntTooBig: 200}

func cookieOf(owner uint16, id uint32) uint64 { return cookieOurs | uint64(owner)<<32 | uint64(id) }

// Punted says whose entry punted a packet, by the cookie that came with it, and which of the owner's.
func Punted(cookie uint64) (owner uint16, id uint32, ok bool) {
	return uint16(cookie >> 32), uint32(cookie), cookie&cookieMask == cookieOurs
}

func ours(id uint32) bool { return id >= firstID && id <= lastID }

// numbered finds an id of ours for something: from its hash on, the first that taken does not refuse. Who is
// numbered by what it is has the same number after a restart, so that the switch's own need not change. The
// second result is false when all are taken.
func numbered(hash uint64, reserved uint32, taken func(uint32) bool) (uint32, bool) {
	const all = lastID - firstID + 1
	n := uint32((hash ^ hash>>16 ^ hash>>32 ^ hash>>48) % uint64(all-reserved))
	for range all - reserved {
		if id := firstID + reserved + n; !taken(id) {
			return id, true
		}
		n = (n + 1) % (all - reserved)
	}
	return 0, false
}

// punt is the end of an entry whose packets go to the controller, as many as the meter lets through.
func (t *Tables) punt(meter ofp.MeterID) []ofp.Instruction {
	out := ofp.Output{Port: ofp.PortController, MaxLen: ofp.WholePacket}
	switch {
	case meter == 0:
		return ofp.Apply(out)
	case t.o.Version >= ofp.V15:
		return ofp.Apply(ofp.MeterAction{ID: meter}, out)
	}
	return []ofp.Instruction{ofp.MeterInstruction{ID: meter}, ofp.ApplyActions{Actions: []ofp.Action{out}}}
}
