package labcmd

import (
	"fmt"
	"strings"
	"testing"

	"scaffold.dev/scaffold/emu/fidelity"
)

func TestACertificateOfManyLinksShowsWhatFailed(t *testing.T) {
	c := &fidelity.Certificate{Bounds: fidelity.Usual}
	for i := range 100 {
		row := fidelity.Row{From: fmt.Sprint("r", i), To: "x", Packets: uint64(1000 - i)}
		if i >= 60 && i < 85 { // the fewest packets of all
			row.Packets, row.Faults = 1, []string{"3 packets lost"}
			c.Reasons = append(c.Reasons, row.Name()+": "+row.Faults[0])
		}
		c.Links = append(c.Links, row)
	}
	var out strings.Builder
	if err := printCertificate(&out, c); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range map[int]string{1: "r60->x", 25: "r84->x", 26: "r0->x", 40: "r14->x", 41: "and 60 more directions", 42: "NOT faithful", 63: "and 5 more reasons"} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d has no %q:\n%s", i, want, out.String())
		}
	}
	if strings.Count(out.String(), " NO ") != 25 {
		t.Errorf("25 directions are not marked:\n%s", out.String())
	}
}
