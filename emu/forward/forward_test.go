package forward_test

import (
	"bytes"
	"testing"

	"scaffold.dev/scaffold/emu/forward"
)

func TestEachRouterTakesOneFromTheHopLimit(t *testing.T) {
	for _, mode := range []string{"lpm", "class"} {
		l := newLine(t, 5, nil)
		if mode == "class" {
			_, err := forward.Compile(l.Net)
			must(t, err)
		}
		for _, to := range []string{"fd0b::1", "10.0.2.1"} {
			sent := l.from0(t, to, 64, 100)
			got := l.ends[1].got
			if len(got) != 1 || got[0].hop != 59 || !bytes.Equal(got[0].bytes[20:], sent[20:]) {
				t.Fatalf("%s: %+v", mode, got)
			}
			l.ends[1].got = nil
		}
		if m := l.routers[2].Mode(); m != mode {
			t.Errorf("mode %s, want %s", m, mode)
		}
	}
}
