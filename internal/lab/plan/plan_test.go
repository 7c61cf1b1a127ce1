package plan

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/lab/file"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func planOf(t testing.TB, text string) *Plan {
	t.Helper()
	f, err := file.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Make(f)
}

// A line of two Scaffold routers with two plain ones between, and a service router at the left.
const line = `
nodes:
  ctl: controller
  sr: {kind: router, service: true}
  r1: router
  p1: plain
  p2: plain
  r2: router
  c1: host
links: [[sr, r1], [r1, p1], [p1, p2], [p2, r2], [c1, r1]]
`

func TestPlainRoutersCarryBlocksAndServices(t *testing.T) {
	p := planOf(t, line)
	p1 := p.Node("p1")
	var got []string
	for _, r := range p1.Routes {
		got = append(got, fmt.Sprintf("%v via %v dev %s", r.Prefix, r.Via, r.Dev))
	}
	r1, p2 := p.Node("r1").LinkLocal, p.Node("p2").LinkLocal
	want := []string{
		fmt.Sprintf("fd5d:0:1:100::/56 via %v dev to-r1", r1), // sr, behind r1
		fmt.Sprintf("fd5d:0:1:200::/56 via %v dev to-r1", r1),
		fmt.Sprintf("fd5d:0:1:300::/56 via %v dev to-p2", p2),
		fmt.Sprintf("fd5c::/32 via %v dev to-r1", r1),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("routes of p1:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRoutersKnowTheirPeersBehindPlainOnes(t *testing.T) {
	p := planOf(t, line)
	got := fmt.Sprint(p.Node("r1").Peers, p.Node("r2").Peers, p.Node("sr").Peers)
	want := fmt.Sprintf("[{r2 to-p1 %v 3}] [{r1 to-p2 %v 3}] []", p.Node("p1").LinkLocal, p.Node("p2").LinkLocal)
	if got != want {
		t.Errorf("peers %s, want %s", got, want)
	}
}

func TestBlocksThatAreAskedForAreKept(t *testing.T) {
	p := planOf(t, `
nodes:
  ctl: controller
  a: router
  b: {kind: router, block: 1, service: true}
  c: router
links: [[a, b], [b, c]]
`)
	if got := fmt.Sprint(p.Node("a").Block, p.Node("b").Block, p.Node("c").Block); got != "2 1 3" {
		t.Errorf("blocks of a, b, c: %s, want 2 1 3", got)
	}
}

func TestLongAndParallelInterfacesHaveNamesOfTheirOwn(t *testing.T) {
	p := planOf(t, `
nodes:
  ctl: controller
  a: {kind: router, service: true}
  a-node-with-a-long-name-1: router
  a-node-with-a-long-name-2: router
links:
  - [a, a-node-with-a-long-name-1]
  - [a, a-node-with-a-long-name-1]
  - [a, a-node-with-a-long-name-2]
  - [a-node-with-a-long-name-1, a]
`)
	seen := map[string]bool{}
	for _, port := range p.Node("a").Ports {
		if len(port.Dev) > maxDev || seen[port.Dev] {
			t.Errorf("interface %q: too long or twice", port.Dev)
		}
		seen[port.Dev] = true
	}
	if devs := p.Node("a-node-with-a-long-name-1").Ports; devs[0].Dev != "to-a" || devs[1].Dev != "to-a.2" || devs[2].Dev != "to-a.3" {
		t.Errorf("short names are changed without need: %v %v %v", devs[0].Dev, devs[1].Dev, devs[2].Dev)
	}
}

// In any connected network of plain routers, following the static routes from anywhere reaches every
// block, without a loop.
func TestStaticRoutesLeadToTheirBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "nodes")
		text := "nodes:\n  ctl: controller\n  n0: {kind: router, service: true}\n"
		for i := 1; i < n; i++ {
			text += fmt.Sprintf("  n%d: %s\n", i, rapid.SampledFrom([]string{"plain", "router"}).Draw(t, "kind"))
		}
		text += "links:\n"
		for i := 1; i < n; i++ {
			text += fmt.Sprintf("  - [n%d, n%d]\n", i, rapid.IntRange(0, i-1).Draw(t, "parent"))
		}
		for range rapid.IntRange(0, 5).Draw(t, "more") {
			if a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b"); a != b {
				text += fmt.Sprintf("  - [n%d, n%d]\n", a, b)
			}
		}
		f, err := file.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p := Make(f)
		for _, to := range p.Nodes {
			for _, from := range p.Nodes {
				if to.Kind == file.Router && from.Kind == file.Plain {
					follow(t, p, from, to)
				}
			}
		}
	})
}

// follow walks along static routes until a router takes over: its routes are the controller's.
func follow(t *rapid.T, p *Plan, from, to *Node) {
	at := from
	for range p.Nodes {
		if at.Kind == file.Router {
			return
		}
		next := at
		for _, r := range at.Routes {
			if r.Prefix == p.Prefix(to) {
				next = at.Port(r.Dev).Far
				if next.LinkLocal != r.Via {
					t.Fatalf("%s: next hop %v is not the node behind %s", at.Name, r.Via, r.Dev)
				}
			}
		}
		at = next
	}
	t.Fatalf("no route from %s leads to %s", from.Name, to.Name)
}
