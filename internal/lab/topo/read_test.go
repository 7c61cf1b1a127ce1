package topo

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func load(t testing.TB, name string) *Graph {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	g, err := Read(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The files were written by networkx 3.6; the GML one has labels as GML escapes them.
func TestFormatsSayTheSameOfTheSameGraph(t *testing.T) {
	at := func(lat, lon float64) *Position { return &Position{Lat: lat, Lon: lon} }
	way := func(w Way) [2]Way { return [2]Way{w, w} }
	want := &Graph{
		Name: "small",
		Nodes: []Node{
			{"zurich", "Zürich", at(47.37, 8.54), 0}, {"st-gallen", "St. Gallen", at(47.42, 9.37), 0},
			{"geneve", "Genève", at(46.2, 6.15), 0}, {"zurich-2", "Zürich", nil, 0},
		},
		Links: []Link{
			{Ends: [2]int{0, 1}, Ways: way(Way{Rate: 1e10})}, {Ends: [2]int{0, 1}, Ways: way(Way{Delay: 2 * time.Millisecond})},
			{Ends: [2]int{0, 3}, Ways: way(Way{Weight: 3})}, {Ends: [2]int{1, 2}, Length: 280.5},
		},
	}
	for _, name := range []string{"small.graphml", "small.gml", "small-edges.json", "small-links.json"} {
		if got := load(t, name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

func TestTheDirectionsOfALinkMayDiffer(t *testing.T) {
	want := []Link{{Ends: [2]int{0, 1}, Ways: [2]Way{{Delay: 3 * time.Millisecond, Rate: 1e10}, {Delay: 5 * time.Millisecond}}}}
	if g := load(t, "ways.json"); !reflect.DeepEqual(g.Links, want) {
		t.Errorf("read %+v, want %+v", g.Links, want)
	}
}

func TestRelationsOfAutonomousSystemsAreRead(t *testing.T) {
	g := load(t, "small.as-rel2")
	want := &Graph{
		Nodes: []Node{{"as3356", "AS3356", nil, 3356}, {"as1", "AS1", nil, 1}, {"as174", "AS174", nil, 174}, {"as2", "AS2", nil, 2}},
		Links: []Link{{Ends: [2]int{0, 1}, Relation: Provider}, {Ends: [2]int{0, 2}, Relation: Peer}, {Ends: [2]int{2, 3}, Relation: Provider}},
	}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("read %+v, want %+v", g, want)
	}
}

func TestAFormatIsToldByHowTheFileBegins(t *testing.T) {
	for _, name := range []string{"small.graphml", "small.gml", "small-edges.json", "small.as-rel2"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(text)
		z.Close()
		for _, text := range [][]byte{text, append([]byte("\ufeff"), text...), packed.Bytes()} {
			if g, err := Read("graph", text); err != nil || len(g.Nodes) != 4 {
				t.Errorf("%s without its name: %v", name, err)
			}
		}
	}
}

func TestNodesMayBeNamedByTheirNumbers(t *testing.T) {
	g, err := Read("d3.json", []byte(`{"nodes":[{"id":"a"},{"id":"b"}],"links":[{"source":0,"target":1}]}`))
	if err != nil || g.Links[0].Ends != [2]int{0, 1} {
		t.Errorf("read %+v, %v", g, err)
	}
	g, err = Read("ids.json", []byte(`{"nodes":[{"id":1},{"id":0}],"links":[{"source":0,"target":1}]}`))
	if err != nil || g.Links[0].Ends != [2]int{1, 0} {
		t.Errorf("read %+v, %v", g, err)
	}
}

// Nodes of networkx's grids are tuples, which JSON has as lists.
func TestNodesMayBeTuples(t *testing.T) {
	g, err := Read("grid.json", []byte(`{"directed": false, "multigraph": false, "graph": {}, "nodes": [{"id": [0, 0]}, {"id": [0, 1]}, {"id": [1, [2, "x"]]}],
		"edges": [{"source": [0, 0], "target": [0, 1]}, {"source": [1, [2, "x"]], "target": [0, 1]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Node{{Name: "0-0", Label: "(0, 0)"}, {Name: "0-1", Label: "(0, 1)"}, {Name: "1-2-x", Label: "(1, (2, x))"}}
	if !reflect.DeepEqual(g.Nodes, want) || len(g.Links) != 2 || g.Links[1].Ends != [2]int{2, 1} {
		t.Errorf("read %+v", g)
	}
}

func TestWrongFilesGetOneClearLine(t *testing.T) {
	const graph = `<graphml><key id="k" for="node" attr.name="Latitude"/><key id="l" for="node" attr.name="Longitude"/><graph edgedefault="undirected">` + "\n"
	for _, c := range []struct{ file, text, want string }{
		{"a.graphml", "", "a.graphml:1: not GraphML: expected <graphml>, found no element"},
		{"a.graphml", `{"nodes":[]}`, "a.graphml:1: not GraphML: expected <graphml>, found no element"},
		{"a.graphml", "<html></html>", "a.graphml:1: not GraphML: expected <graphml>, found <html>"},
		{"a.graphml", "<graphml></graphml>", "a.graphml:1: no <graph> in <graphml>"},
		{"a.graphml", graph + "<node id='a'>", "a.graphml:2: not XML: unexpected EOF"},
		{"a.graphml", graph + "<node id='a'/>\n<node id='a'/></graph></graphml>", `a.graphml:3: node "a" stands twice (first on line 2)`},
		{"a.graphml", graph + "<node id='a'/>\n<edge source='a' target='b'/></graph></graphml>", `a.graphml:3: link to unknown node "b"`},
		{"a.graphml", graph + "<node id='a'/>\n<edge source='a' target='a'/></graph></graphml>", `a.graphml:3: link from "a" to itself; a router needs none: remove it`},
		{"a.graphml", graph + "<node id='a'><data key='k'>NaN</data></node></graph></graphml>", `a.graphml:2: Latitude: expected a number, found "NaN"`},
		{"a.graphml", graph + "<node id='a'><data key='k'>91</data><data key='l'>0</data></node></graph></graphml>", `a.graphml:2: latitude 91: expected -90 to 90`},
		{"a.graphml", graph + "<node id='a'><data key='k'>1</data></node></graph></graphml>", `a.graphml:2: latitude and longitude go together; one is missing`},
		{"a.graphml", graph + "<node id='a'><data key='x'>1</data></node></graph></graphml>", `a.graphml:2: data of key "x", which no <key> before declares`},
		{"a.graphml", graph + "<node id='a'><graph/></node></graph></graphml>", `a.graphml:2: a second graph; expected one, and none inside another`},
		{"a.graphml", graph + "<hyperedge/></graph></graphml>", `a.graphml:2: <hyperedge>; expected nodes and edges only`},
		{"a.graphml", "<?xml version='1.0' encoding='EBCDIC'?><graphml/>", `a.graphml:1: not XML: xml: opening charset "EBCDIC": encoding "EBCDIC"; expected UTF-8`},
		{"a.gml", "", "a.gml:1: not GML: expected graph [ ... ]"},
		{"a.gml", "<graphml/>", `a.gml:1: not GML: expected a key, found "<graphml/>"`},
		{"a.gml", "graph 7", `a.gml:1: graph is "7"; expected a list in brackets`},
		{"a.gml", "graph [\n node [ id 1 ]\n", "a.gml:3: a list that does not end; expected ]"},
		{"a.gml", "graph [\n node [ label \"x ] ]\n", "a.gml:2: a string that does not end; expected a closing quote"},
		{"a.gml", "graph [\n node [ label \"x\" ] ]", "a.gml:2: a node without an id"},
		{"a.gml", "graph [ ]", "a.gml: no node; expected at least one"},
		{"a.gml", "graph [ node [ id 1 ]\nedge [ source 1 ] ]", "a.gml:2: an edge without source or target"},
		{"a.gml", "graph [ node [ id 1 ] node [ id 2 ]\nedge [ source 1 target 2\nlength -4 ] ]", `a.gml:3: length: expected a number from 0, found "-4"`},
		{"a.gml", "graph [ node [ id 1 ] node [ id 2 ]\nedge [ source 1 target 2\nLinkSpeedRaw fast ] ]", `a.gml:3: LinkSpeedRaw: expected a rate such as 10Gbit, or a number of bit/s, found "fast"`},
		{"a.gml", strings.Repeat("a [", 40), "a.gml:1: lists in lists, more than 32 deep"},
		{"a.gml", "graph [ directed 1 node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 length 4 ]\nedge [ source 2 target 1 length 5 ] ]", "a.gml:2: the link is 5 km long, and 4 km in the other direction"},
		{"a.json", "", "a.json:1: not JSON: it ends too early"},
		{"a.json", "[]", "a.json:1: not node-link JSON: expected an object with nodes and links, found ["},
		{"a.json", "{\n\"nodes\": 7}", "a.json:2: not node-link JSON: expected a list of nodes, found 7"},
		{"a.json", "{\n\"nodes\": [7]}", "a.json:2: expected an object in a list of nodes, found number"},
		{"a.json", "{\"nodes\": [\n{\"id\": [1, []]}]}", "a.json:2: a node without an id that is text, a number or a list of them"},
		{"a.json", "{\"nodes\": []}", "a.json:1: not node-link JSON: expected a list links or edges"},
		{"a.json", "{\"links\": [], \"edges\": []}", "a.json:1: both links and edges; expected one list of links"},
		{"a.json", "{\"nodes\": [{\"id\": 1},\n\n{\"id\": 1}], \"links\": []}", `a.json:3: node "1" stands twice (first on line 1)`},
		{"a.json", "{\"nodes\":\n [{\"id\": 1}\n,]", "a.json:3: not JSON: invalid character ']' looking for beginning of value"},
		{"a.json", "{\"nodes\": [{\"id\": 1}], \"links\": [\n{\"source\": 1}]}", "a.json:2: a link without source or target that is text, a number or a list of them"},
		{"a.json", "{\"nodes\": [{\"id\": 1}], \"links\": []}\n{}", "a.json:2: something behind the end of the JSON object"},
		{"a.json", "{\"nodes\": [{\"id\": 1,\"x_km\":1,\"y_km\":2},\n{\"id\": 2,\"lat\":1,\"lon\":2}], \"links\": []}", `a.json:2: node "2": some nodes have a place on the globe and some in a plane; expected one kind`},
		{"a.json", "{\"directed\": 1}", "a.json:1: expected a value of type bool, found a number"},
		{"a.txt", "1|2", `a.txt:1: not CAIDA's AS relationships: expected AS|AS|RELATION, found "1|2"`},
		{"a.txt", "# c\n1|x|0", `a.txt:2: expected the number of an autonomous system, found "x"`},
		{"a.txt", "1|2|2", `a.txt:1: relation "2"; expected -1 (the first is the second's provider) or 0 (peers)`},
		{"a.txt", "1|1|0", "a.txt:1: AS1 is its own neighbour"},
		{"a.txt", "1|2|0\n2|1|-1", "a.txt:2: AS2 and AS1 stand twice (first on line 1)"},
		{"a.txt", "# nothing", "a.txt: no node; expected at least one"},
		{"a", "\x1f\x8bnonsense", "a: unpack: gzip: invalid header"},
	} {
		_, err := Read(c.file, []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%q\nsaid %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestAPackedFileMayNotUnpackWithoutEnd(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range MaxFile>>20 + 1 {
		z.Write(zeros)
	}
	z.Close()
	if _, err := Read("a.gml.gz", packed.Bytes()); err == nil || err.Error() != "a.gml.gz: more than 64 MB; expected a smaller graph" {
		t.Errorf("said %v", err)
	}
}
