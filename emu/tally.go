package emu

// A tally is what packets amount to that go the same way.
type tally struct {
	packets uint64 // those of trains one by one
	bytes   uint64 // of their frames
	all     uint8  // flags that all have
}

// tally counts packets, and gives them the number of the port by which they arrive: all that there is to do for each
// of them on a wire, in one pass.
func (a *arena) tally(run []Packet, port uint16) tally {
	var packets, bytes uint64
	all, any := ^uint8(0), uint8(0)
	for i := range run {
		p := &run[i]
		p.Port = port
		packets += uint64(p.count)
		bytes += uint64(p.length)
		all &= p.flags
		any |= p.flags
	}
	if any&flagTrain != 0 {
		return tally{packets, a.spans(run), all}
	}
	return tally{packets, bytes + etherLen*uint64(len(run)), all}
}

// spans is the number of bytes of packets among which are trains.
func (a *arena) spans(run []Packet) (bytes uint64) {
	for i := range run {
		bytes += a.span(&run[i])
	}
	return bytes
}
