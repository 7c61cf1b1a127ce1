package lab

import (
	"fmt"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/nstest"
)

// circle is a ring of four emulated routers between two hosts; the way by r3 costs more.
const circle = `
name: NAME
nodes: {h1: host, r1: emulated, r2: emulated, r3: emulated, r4: emulated, h2: host}
links:
  - [h1, r1]
  - {ends: [r1, r2], delay: 2ms}
  - {ends: [r2, r4], delay: 2ms}
  - {ends: [r1, r3], delay: 1ms, cost: 5}
  - [r3, r4]
  - [r4, h2]
`

// reaches is an error unless a ping arrives.
func reaches(t *testing.T, l *Lab, from string, to ...string) error {
	out, err := l.Output(t.Context(), from, append(strings.Fields("ping -c 1 -W 1"), to...)...)
	if err != nil {
		return fmt.Errorf("%s: ping %s: %w\n%s", from, to, err, out)
	}
	return nil
}

func TestPingsCrossARingOfEmulatedRouters(t *testing.T) {
	before := machine(t)
	l := bareLab(t, circle, "circle")
	for _, to := range [][]string{{"-6", "h2"}, {"-4", "h2"}, {"-6", "r3"}, {"-4", "r4"}, {"-6", "-s", "1400", "h2"}} {
		nstest.Wait(t, "the engine's log", func() error { return reaches(t, l, "h1", to...) })
	}
	if err := Down(t.Context(), l.File.Name, l.opt); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
