package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// A verdict is what becomes of something that is tried while parts of the network are away.
type verdict int

const (
	works   verdict = iota // while they are away
	waits                  // until they are back, and works then
	refused                // at once; of a flow that was there: it ends
	later                  // of a flow: it ends when it was silent for ten seconds; of a question: it may wait. Not tried here
)

// What is tried, in the order of the table's columns.
const (
	newFlow   = "connect()" // and the first answer
	question  = "question by UDP"
	knownName = "name asked before" // by this host
	newName   = "another name"
	oldFlow   = "flow to s1"
	elsewhere = "flow to s2"
	register  = "s1 registers" // a port; until all routers that are there know it
)

var tried = []string{newFlow, question, knownName, newName, oldFlow, elsewhere, register}

// words are how the table writes a verdict.
func (v verdict) words(column string) string {
	switch {
	case v == works:
		return "works"
	case v == waits:
		return "waits"
	case v == later && column == question:
		return "may wait"
	case v == later:
		return "ends later"
	case column == oldFlow || column == elsewhere:
		return "ends"
	}
	return "refused"
}

// An expectation is what does not work, by what is tried.
type expectation map[string]verdict

// A part is something of the network in testdata/pairs.yaml that can be away. While it is, its daemons are dead, its
// links down, its servers dead.
type part struct {
	name    string
	daemons []string    // NODE/PROGRAM
	links   [][2]string // to be unplugged
	cut     bool        // the links lose everything and keep their carriers instead
	server  string      // a host's server program
	not     expectation
	why     string
}

// parts are all, those first whose absence others must not notice: in a pair the first is away before the second.
var parts = []part{
	{name: "the controller", daemons: []string{controller}, not: expectation{newName: refused, register: waits},
		why: "rules stay as they are"},
	{name: "the client's hostd", daemons: []string{"c1/hostd"}, not: expectation{knownName: refused, newName: refused},
		why: "it is the host's name server"},
	{name: "the server's hostd", daemons: []string{"s1/hostd"}, not: expectation{register: waits},
		why: "what listens is dumped at its next start; what ends is seen by the edge"},
	{name: "the client's routerd", daemons: []string{"ra/routerd"},
		why: "its kernel forwards, and chooses among those that served when it died"},
	{name: "the server's routerd", daemons: []string{"rs/routerd"}, why: "its kernel forwards"},
	{name: "the server's program", server: "s1", not: expectation{oldFlow: refused}, why: "its socket's end is its withdrawal"},
	{name: "the other server's program", server: "s2", not: expectation{elsewhere: refused}, why: "the same"},
	{name: "a link between routers", links: [][2]string{{"ra", "t"}}, why: "flows go by another path"},
	{name: "a router between them", daemons: []string{"t/routerd"}, links: [][2]string{{"ra", "t"}, {"rs", "t"}}, why: "the same"},
	{name: "the client's uplink", links: [][2]string{{"c1", "ra"}}, why: "flows move to its other one"},
	{name: "the client's other uplink", links: [][2]string{{"c1", "u"}}, why: "nothing goes by it"},
	{name: "the client's router", daemons: []string{"ra/routerd"}, links: [][2]string{{"c1", "ra"}, {"ra", "t"}, {"ra", "u"}},
		why: "as its uplink"},
	{name: "the server's uplink", links: [][2]string{{"s1", "rs"}}, why: "flows move to its other one"},
	{name: "the server's host", links: [][2]string{{"s1", "rs"}, {"s1", "u"}}, cut: true,
		not: expectation{oldFlow: refused, register: waits}, why: "its routers miss its answers"},
}

// includes reports whether one of the two is a part of the other.
func (x part) includes(y part) bool {
	return contains(x, y) || contains(y, x)
}

func contains(x, y part) bool {
	for _, d := range y.daemons {
		if !slices.Contains(x.daemons, d) {
			return false
		}
	}
	for _, l := range y.links {
		if !slices.Contains(x.links, l) {
			return false
		}
	}
	return y.server == ""
}

// leaves reports whether y, once it is back, is not what it was for as long as x is away: a host or router whose daemon is
// away sets up no link, and nothing joins or is registered without a controller.
func (x part) leaves(y part) bool {
	if slices.Contains(x.daemons, controller) {
		return len(y.links) > 0 || y.server != ""
	}
	return slices.ContainsFunc(y.links, func(l [2]string) bool {
		return slices.ContainsFunc(x.daemons, func(d string) bool { node, _, _ := strings.Cut(d, "/"); return node == l[0] || node == l[1] })
	})
}

// An exception is a pair of which more, or less, works than of its two parts.
type exception struct {
	a, b string
	not  expectation
	why  string
}

var exceptions = []exception{
	{"the controller", "the server's host", expectation{newName: refused, oldFlow: waits, register: waits},
		"nobody tells the client's host; the server's router knows, and sends first packets on to another instance"},
	{"the client's hostd", "the client's uplink", expectation{knownName: refused, newName: refused, oldFlow: waits, elsewhere: waits},
		"nobody moves its flows; new ones go by the other uplink"},
	{"the client's hostd", "the client's router", expectation{knownName: refused, newName: refused, oldFlow: waits, elsewhere: waits}, "the same"},
	{"the client's hostd", "the server's host", expectation{knownName: refused, newName: refused, oldFlow: waits, register: waits},
		"nobody hears that the server is gone"},
	{"the server's hostd", "the client's router", expectation{oldFlow: waits, register: waits}, "a move takes both daemons; after a mere uplink the router redirects"},
	{"the server's hostd", "the server's uplink", expectation{oldFlow: waits, register: waits}, "nobody moves the host"},
	{"the client's routerd", "the client's other uplink", expectation{newName: refused}, "the host's way to the controller is by a routerd"},
	{"the client's routerd", "the server's host", expectation{oldFlow: later, register: waits}, "it hears of nothing: as without a controller"},
	{"the server's routerd", "the server's host", expectation{question: waits, oldFlow: later, register: waits},
		"nobody probes the host; a SYN that is sent again goes to another instance, after a second"},
	{"the server's program", "the other server's program", expectation{newFlow: refused, question: later, oldFlow: refused, elsewhere: refused},
		"nobody serves; a UDP socket hears of it, or waits"},
	{"the other server's program", "the server's host", expectation{newFlow: refused, question: later, oldFlow: waits, elsewhere: refused, register: waits},
		"the same; a flow that cannot turn to others waits"},
	{"the client's uplink", "the client's other uplink", expectation{newFlow: waits, question: waits, newName: refused, oldFlow: waits, elsewhere: waits},
		"there is no way"},
	{"the client's other uplink", "the client's router", expectation{newFlow: waits, question: waits, newName: refused, oldFlow: waits, elsewhere: waits},
		"the same"},
}

// expected is the worse of the two, where no exception says otherwise.
func expected(away ...part) expectation {
	not := expectation{}
	for _, p := range away {
		for what, v := range p.not {
			not[what] = max(not[what], v)
		}
	}
	if len(away) == 2 {
		if x := excepted(away[0], away[1]); x != nil {
			return x.not
		}
	}
	return not
}

func excepted(a, b part) *exception {
	i := slices.IndexFunc(exceptions, func(x exception) bool { return x.a == a.name && x.b == b.name })
	if i < 0 {
		return nil
	}
	return &exceptions[i]
}

// table is what docs/architecture.md has.
func table() string {
	var s strings.Builder
	head := "| away | " + strings.Join(tried, " | ") + " | why |\n"
	rule := "|" + strings.Repeat(" --- |", len(tried)+2) + "\n"
	line := func(name string, not expectation, why string) {
		fmt.Fprintf(&s, "| %s |", name)
		for _, what := range tried {
			fmt.Fprintf(&s, " %s |", not[what].words(what))
		}
		fmt.Fprintf(&s, " %s |\n", why)
	}
	s.WriteString(head + rule)
	for _, p := range parts {
		line(p.name, p.not, p.why)
	}
	for _, x := range exceptions {
		line(x.a+", and "+x.b, x.not, x.why)
	}
	for _, x := range amid {
		fmt.Fprintf(&s, "| %s, and %s, after the SYN | %s |%s %s |\n", x.a, x.b, x.is.words(newFlow), strings.Repeat(" |", len(tried)-1), x.why)
	}
	return s.String()
}

// TestTheArchitectureSaysWhatWorksWhileSomethingIsAway holds the table there to the one here, which the test of the
// pairs holds to the network.
func TestTheArchitectureSaysWhatWorksWhileSomethingIsAway(t *testing.T) {
	text, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## What works while something is away\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var lines strings.Builder
	for l := range strings.Lines(section) {
		if strings.HasPrefix(l, "|") {
			lines.WriteString(l)
		}
	}
	if lines.String() != table() {
		t.Errorf("the table in docs/architecture.md, \"What works while something is away\", is\n%s\nwant\n%s", lines.String(), table())
	}
}

// TestEachExceptionIsOfAPair: one that names no part, or names them in another order, would be no exception.
func TestEachExceptionIsOfAPair(t *testing.T) {
	at := map[string]int{}
	for i, p := range parts {
		at[p.name] = i + 1
	}
	for _, x := range amid {
		if at[x.a] == 0 || at[x.b] <= at[x.a] {
			t.Errorf("%q and %q, after the SYN: expected two parts, in the order of the table", x.a, x.b)
		}
	}
	for _, x := range exceptions {
		if at[x.a] == 0 || at[x.b] <= at[x.a] {
			t.Errorf("the exception of %q and %q: expected two parts, in the order of the table", x.a, x.b)
		}
	}
}
