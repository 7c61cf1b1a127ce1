package plan

import (
	"fmt"
	"strings"
	"testing"
)

// rowOf is a network of n routers in a row, between two hosts.
func rowOf(n int) string {
	var text strings.Builder
	text.WriteString("nodes:\n  h1: host\n  h2: host\n")
	for i := range n {
		fmt.Fprintf(&text, "  r%d: emulated\n", i)
	}
	fmt.Fprintf(&text, "links:\n  - [h1, r0]\n  - [r%d, h2]\n", n-1)
	for i := range n - 1 {
		fmt.Fprintf(&text, "  - [r%d, r%d]\n", i, i+1)
	}
	return text.String()
}

func TestALabThatDoesNotFitIsRefusedWithTheNumber(t *testing.T) {
	need := planOf(t, rowOf(1000)).Need()
	const routes = 1000 * (2*1000 + 2*2) // two addresses of each router, two subnets of each host
	if need.Routers != 1000 || need.Routes != routes || need.Links != 1001 || need.Namespaces != 2 || need.Interfaces != 2 {
		t.Errorf("%+v, want %d routes", need, routes)
	}
	if err := need.Fits(need.Memory, 1024); err != nil {
		t.Errorf("with just enough: %v", err)
	}
	err := need.Fits(100<<20, 1024)
	if want := fmt.Sprintf("needs about %d MB (1000 routers inside the engine with %d routes", need.Memory>>20, routes); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with 100 MB: %v", err)
	}
	if err := need.Fits(need.Memory, 65); err == nil || !strings.Contains(err.Error(), "would open 2 interfaces, and a process may open 65 files") {
		t.Errorf("with 65 files: %v", err)
	}
}
