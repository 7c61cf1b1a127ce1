package links

import (
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/wires"
)

// Line counts one direction of a link since it was made.
type Line struct {
	Packets uint64 `json:"packets"` // that passed
	Bytes   uint64 `json:"bytes"`   // of them, whole Ethernet frames without checksum
	Lost    uint64 `json:"lost"`    // packets: lost or dropped by the link, or refused at its far end

	Rate uint64 `json:"rate_bit_s,omitempty"` // that it has now at most; 0 is no limit
}

// Traffic is what one link carries.
type Traffic struct {
	Ends  [2]string `json:"ends"`
	State string    `json:"state"` // as in Status
	Lines [2]Line   `json:"lines"` // Lines[0] from Ends[0] to Ends[1]
}

// Traffic counts what each link carries, in the order of the file.
func (l *Links) Traffic() []Traffic {
	w := wires.New()
	defer w.Close()
	emulated, err := l.Engine.Links()
	if err != nil {
		emulated = nil // its links are down, which is what is shown
	}
	all := make([]Traffic, 0, len(l.Plan.Cable))
	for i, c := range l.Plan.Cable {
		t := Traffic{Ends: c.Ends, State: stateOf(w, c, emulated.Cable(i))}
		for way := range c.Ends {
			if c.Nodes[way].Kind.IsNamespace() {
				s := w.Sent(c.Nodes[way].Netns, c.Ports[way].Dev)
				t.Lines[way] = Line{Packets: s.Packets, Bytes: s.Bytes, Lost: s.Lost}
			}
			t.Lines[way].Rate = c.Rate
		}
		if e := emulated.Cable(i); e != nil {
			t.Lines = passed(e)
		}
		all = append(all, t)
	}
	return all
}

// passed is what passed an emulated link.
func passed(e *engine.Link) (lines [2]Line) {
	for i, l := range e.Lines {
		c := l.Counters
		lines[i] = Line{
			Packets: c.Passed, Bytes: c.PassedByte,
			Lost: c.Lost + c.LostBurst + c.Overflow + l.Cut + l.Refused + l.Starved,
			Rate: l.Params.Rate,
		}
	}
	return lines
}
