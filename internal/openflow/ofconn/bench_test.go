package ofconn

import (
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// BenchmarkFlowsIntoOpenVSwitch is one flow, put in, in batches of 10,000 that a barrier ends.
func BenchmarkFlowsIntoOpenVSwitch(b *testing.B) {
	c, err := Dial(b.Context(), "unix:"+nstest.New(b, "switch").NewOVS(b).Bridge(b, "s1", "OpenFlow15"), nil, Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	const batch = 10000
	bodies := make([]ofp.Body, batch)
	for n := 0; b.Loop(); n++ {
		i := uint64(n % batch)
		bodies[i] = ofp.FlowMod{Match: ofp.Match{ofp.Uint(ofp.EthType, 0x86dd), ofp.Uint(ofp.Metadata, i)}, Instructions: ofp.Apply(ofp.DecTTL{}, ofp.Output{Port: 1})}
		if i == batch-1 {
			if err := c.Do(b.Context(), bodies...); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkBarrier is a flow and a barrier, and the wait for the answer.
func BenchmarkBarrier(b *testing.B) {
	c, err := Dial(b.Context(), "unix:"+nstest.New(b, "switch").NewOVS(b).Bridge(b, "s1", "OpenFlow15"), nil, Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		if err := c.Do(b.Context(), ofp.FlowMod{Match: ofp.Match{ofp.Uint(ofp.InPort, 1)}}); err != nil {
			b.Fatal(err)
		}
	}
}
