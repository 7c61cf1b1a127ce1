package file

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func parseTopology(t *testing.T, topology string) *File {
	t.Helper()
	f, err := Parse("testdata/t.yaml", []byte("topology: "+topology+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestATopologyBecomesNodesAndLinks(t *testing.T) {
	f, err := Parse("t.yaml", []byte(`
topology: {generate: ring, size: 4, rate: 10Mbit, cost: 7, except: {r2: plain, r3: {fib: lpm}}}
nodes: {h1: host, h2: host}
links: [[h1, r1], [h2, r3]]
`))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []Kind{}
	for _, n := range f.Nodes {
		kinds = append(kinds, n.Kind)
	}
	if want := []Kind{Host, Host, Emulated, Plain, Emulated, Emulated}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("kinds %v, want %v", kinds, want)
	}
	if len(f.Links) != 6 || f.Links[5].Ends != [2]string{"r4", "r1"} || f.Links[5].Emulated[0].Rate != 1e7 || f.Links[5].Cost != 7 || f.Links[0].Rate != 0 {
		t.Errorf("links %+v", f.Links[5])
	}
	if f.Node("r3").FIB != "lpm" || f.Node("r1").Line != 2 {
		t.Errorf("r3 %+v", f.Node("r3"))
	}
}

func TestDelaysFollowFromDistances(t *testing.T) {
	f := parseTopology(t, "{file: ../../topo/testdata/small.graphml, largest: true, default-delay: 1ms, cost: 3}")
	delays := []time.Duration{}
	for _, l := range f.Links {
		delays = append(delays, l.Emulated[0].Delay, l.Emulated[1].Delay)
	}
	// Zürich to St. Gallen are 62.7 km; then what the file says; then nothing known; then 280.5 km.
	want := []time.Duration{314, 314, 2000, 2000, 1000, 1000, 1403, 1403}
	for i := range want {
		want[i] *= time.Microsecond
	}
	if !reflect.DeepEqual(delays, want) {
		t.Errorf("delays %v, want %v", delays, want)
	}
	if f.Links[0].Emulated[0].Rate != 1e10 || f.Links[1].Emulated[0].Rate != 0 {
		t.Errorf("rates %+v", f.Links[0])
	}
	f = parseTopology(t, "{file: ../../topo/testdata/small.graphml, delay: none, rate: 1Gbit, kind: plain}")
	if f.Links[0].Emulated != nil || f.Links[0].Rate != 1e9 {
		t.Errorf("without delays: %+v", f.Links[0])
	}
	f = parseTopology(t, "{file: ../../topo/testdata/ways.json, cost: delay}")
	if e := f.Links[0].Emulated; e[0].Delay != 3*time.Millisecond || e[1].Delay != 5*time.Millisecond || e[0].Rate != 1e10 || e[1].Rate != 0 || f.Links[0].Cost != 500 {
		t.Errorf("ways %+v, cost %d", e, f.Links[0].Cost)
	}
}

func TestSystemsKeepTheirNumbers(t *testing.T) {
	f := parseTopology(t, "{file: ../../topo/testdata/small.as-rel2, kind: frr, node: {protocols: [bgp]}, except: {as1: {as: 7}}}")
	if f.Node("as3356").AS != 3356 || f.Node("as1").AS != 7 {
		t.Errorf("%+v, %+v", f.Node("as3356"), f.Node("as1"))
	}
}

func TestALinksSeedIsOfTheTopologys(t *testing.T) {
	seeds := func(topology string) (all []uint64) {
		for _, l := range parseTopology(t, topology).Links {
			all = append(all, l.Emulated[0].Seed, l.Emulated[1].Seed)
		}
		return all
	}
	one, two := seeds("{generate: line, size: 3, seed: 1}"), seeds("{generate: line, size: 3, seed: 2}")
	if again := seeds("{generate: line, size: 3, seed: 1}"); !reflect.DeepEqual(one, again) || reflect.DeepEqual(one, two) {
		t.Errorf("seeds %v, %v, %v", one, again, two)
	}
	seen := map[uint64]bool{}
	for _, s := range one {
		if seen[s] {
			t.Errorf("two ways have the seed %d", s)
		}
		seen[s] = true
	}
}

// A lab that is up is read from its state, when the map may be gone.
func TestALabKeepsTheFilesThatItNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lab.yaml")
	os.WriteFile(path, []byte("topology: {file: maps/m.json}\n"), 0o644)
	os.Mkdir(filepath.Join(dir, "maps"), 0o755)
	os.WriteFile(filepath.Join(dir, "maps/m.json"), []byte(`{"nodes":[{"id":"a"},{"id":"b"}],"links":[{"source":"a","target":"b"}]}`), 0o644)
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(dir)
	again, err := ParseWith(path, f.Source, f.Attached)
	if err != nil || len(again.Nodes) != 2 || !reflect.DeepEqual(again.Attached, f.Attached) {
		t.Errorf("read again: %+v, %v", again, err)
	}
	if _, err := Parse(path, f.Source); err == nil {
		t.Error("the map is gone, but was read")
	}
}

func TestWrongTopologiesGetOneClearLine(t *testing.T) {
	for _, c := range []struct{ topology, want string }{
		{"{}", "1: topology: expected generate: NAME or file: PATH, one of them"},
		{"7", `1: topology: expected a mapping (key: value), found "7"`},
		{"{generate: ring, file: x}", "1: topology: expected generate: NAME or file: PATH, one of them"},
		{"{generate: torus}", `1: topology: unknown generator "torus"; expected one of line, ring, fat-tree, gabriel, as-like`},
		{"{generate: ring}", "1: topology: ring needs size"},
		{"{generate: ring, size: 4, k: 4}", "1: topology: ring takes no k; expected size"},
		{"{generate: gabriel, size: 0}", `1: size: expected a number from 1 to 10000, found "0"`},
		{"{generate: gabriel, size: 5, side: NaN}", `1: side: expected a length in km such as 1000, found "NaN"`},
		{"{generate: gabriel, size: 5, seed: -1}", `1: seed: expected a number from 0 to 2^64-1, found "-1"`},
		{"{generate: ring, size: 2}", "1: topology: ring of size 2: expected 3 to 10000 nodes"},
		{"{generate: fat-tree, k: 5}", "1: topology: fat-tree: k is 5: expected an even number from 2 to 88, the ports of a switch"},
		{"{generate: fat-tree, k: 90}", "1: topology: fat-tree: k is 90: expected an even number from 2 to 88, the ports of a switch"},
		{"{generate: line, size: 3, kind: host}", `1: kind: expected one of emulated, frr, router, switch, plain, found "host"`},
		{"{generate: line, size: 3, rate: fast}", `1: rate: expected a rate from 8kbit to 100Gbit, such as 10Mbit or 1Gbit, found "fast"`},
		{"{generate: line, size: 3, jitter: 2ms}", "1: link from r1 to r2: jitter 2ms: expected at most the delay, 0s: delays are uniform in delay ± jitter"},
		{"{generate: line, size: 3, cost: 0}", `1: cost: expected a number from 1 to 65535, weight or delay, found "0"`},
		{"{generate: line, size: 3, cost: weight}", "1: topology: cost: weight: the link from r1 to r2 weighs 0; expected a whole number from 1"},
		{"{generate: line, size: 3, cost: delay}", "1: topology: cost: delay: the link from r1 to r2 has no delay of the graph's own; expected a number, or the lengths of all links"},
		{"{generate: line, size: 3, node: {colour: red}}", `1: unknown key "colour" in node r1; expected one of ` + "..."},
		{"{generate: line, size: 3, except: {r9: frr}}", `1: except "r9": the topology has no node of that name; scaffold lab topology shows them`},
		{"{generate: line, size: 3}\nnodes: {r2: host}", `2: node "r2": the topology has a node of that name (r2); choose another name, or say under except what is different there`},
		{"{file: none.gml}", "1: topology: none.gml: no such file or directory"},
		{"{file: bad}", "1: topology: bad: expected a file, found d---------"},
		{"{file: full.yaml}", `1: topology: full.yaml:1: not GML: expected a key, found "name:"`},
		{"{file: x.gml, k: 4}", "1: topology: k is for generate:; a file has the size that it has"},
		{"{file: apart.json}", "1: topology: apart.json: the graph falls apart into 2 parts: 2 of a, b; 1 of c; expected links between them, or largest: true, which keeps the first"},
		{"{file: ../../topo/testdata/small.gml}", "1: topology: neither delay nor length is known of 1 of 4 links, the first from zurich to zurich-2; expected default-delay: TIME for those, or delay: TIME for all"},
		{"{file: fast.json}", "1: topology: the link from a to b has a rate of 400000000000 bit/s; a lab's have 8kbit to 100Gbit: expected rate: RATE for all links"},
	} {
		_, err := Parse("testdata/t.yaml", []byte("topology: "+c.topology+"\n"))
		if err == nil {
			t.Errorf("%s: no error", c.topology)
			continue
		}
		got := strings.TrimPrefix(err.Error(), "testdata/t.yaml:")
		if begin, cut := strings.CutSuffix(c.want, "..."); got != c.want && !(cut && strings.HasPrefix(got, begin) && !strings.Contains(got, "\n")) {
			t.Errorf("%s\nsaid %s\nwant %s", c.topology, got, c.want)
		}
	}
}

// What `lab topology` prints is what the key means.
func TestAPrintedTopologyIsTheSameNetwork(t *testing.T) {
	for _, settings := range [][]Pair{
		{{"generate", "fat-tree"}, {"k", "4"}, {"rate", "1Gbit"}, {"seed", "3"}},
		{{"generate", "gabriel"}, {"size", "20"}, {"kind", "plain"}, {"cost", "delay"}, {"loss", "1%"}},
		{{"generate", "line"}, {"size", "1"}},
		{{"file", "../topo/testdata/small.as-rel2"}, {"kind", "frr"}},
		{{"file", "../topo/testdata/small.graphml"}, {"default-delay", "1ms"}},
		{{"file", "../topo/testdata/ways.json"}},
		{{"file", "testdata/apart.json"}, {"largest", "true"}},
	} {
		topology, err := MakeTopology(settings)
		if err != nil {
			t.Fatal(err)
		}
		text, err := topology.LabFile()
		if err != nil {
			t.Fatal(err)
		}
		var key strings.Builder
		for _, p := range settings {
			key.WriteString(p.Key + ": " + p.Value + ", ")
		}
		long, err1 := Parse("t.yaml", []byte(text))
		short, err2 := Parse("t.yaml", []byte("topology: {"+key.String()+"}"))
		if err1 != nil || err2 != nil {
			t.Errorf("%v: %v, %v in\n%s", settings, err1, err2, text)
			continue
		}
		if !reflect.DeepEqual(lineless(long), lineless(short)) {
			t.Errorf("%v became\n%s", settings, text)
		}
	}
	if _, err := MakeTopology([]Pair{{"generate", "ring"}, {"k", "4"}}); err == nil || err.Error() != "topology: ring needs size\ntopology: ring takes no k; expected size" {
		t.Errorf("said %v", err)
	}
}

// lineless is what a file says, wherever it says it.
func lineless(f *File) (all []any) {
	for _, n := range f.Nodes {
		n.Line = 0
		all = append(all, *n)
	}
	for _, l := range f.Links {
		l.Line = 0
		all = append(all, *l)
	}
	return all
}
