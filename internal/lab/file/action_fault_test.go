package file

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFaultsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, text := range []string{
		"fail r1", "fail r1 r2", "fail r1:r2", "repair r1:r2", "partition r1,r2 | r3 | r4", "partition r1", "unite",
		"flap r1 r2 every 200ms times 5", "upgrade load 30% seed 7 a=b c=d", "upgrade forward 0.5%",
	} {
		a, err := ParseAction(text)
		if err != nil || a.String() != text {
			t.Errorf("%q: %q, %v", text, a, err)
		}
	}
	for _, text := range []string{
		"fail", "fail r1 r2 r3", "fail r1:", "fail :r1", "fail r1:r2 r3", "partition", "partition r1 |", "partition r1 | r1", "unite r1",
		"flap r1 r2", "flap r1 r2 every 0s times 5", "flap r1 r2 every 1s times 0", "upgrade load", "upgrade load 30",
		"upgrade load 0%", "upgrade load 101%", "upgrade load 5% seed x", "upgrade load 5% a",
	} {
		if a, err := ParseAction(text); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
}

func TestAnUpgradeReachesTheSameRoutersForTheSameSeed(t *testing.T) {
	var text strings.Builder
	text.WriteString("nodes:\n")
	for i := range 50 {
		fmt.Fprintf(&text, "  r%d: emulated\n", i)
	}
	text.WriteString("links:\n")
	for i := range 49 {
		fmt.Fprintf(&text, "  - [r%d, r%d]\n", i, i+1)
	}
	f, err := Parse("t.yaml", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	names := func(action string) (all []string) {
		a, err := ParseAction(action)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range f.Chosen(a) {
			all = append(all, n.Name)
		}
		return all
	}
	seven := names("upgrade forward 30% seed 7")
	if len(seven) != 15 || !slices.Equal(seven, names("upgrade forward 30% seed 7")) || slices.Equal(seven, names("upgrade forward 30% seed 8")) {
		t.Errorf("%v", seven)
	}
	if all := names("upgrade forward 100%"); len(all) != 50 {
		t.Errorf("all are %v", all)
	}
}
