package topo

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// readRelations reads CAIDA's inferred relationships of autonomous systems, serial 1 and 2
// (https://www.caida.org/catalog/datasets/as-relationships/): lines PROVIDER|CUSTOMER|-1 and PEER|PEER|0,
// in serial 2 with the source of the inference behind, and comments that begin with #.
func readRelations(text []byte) (*Graph, error) {
	b := newBuilder()
	seen := map[[2]int]int{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		words := strings.Split(strings.TrimSpace(string(line)), "|")
		if words[0] == "" && len(words) == 1 || strings.HasPrefix(words[0], "#") {
			continue
		}
		l, err := b.relation(words, number)
		if err != nil {
			return nil, err
		}
		pair := [2]int{min(l.Ends[0], l.Ends[1]), max(l.Ends[0], l.Ends[1])}
		if first := seen[pair]; first > 0 {
			return nil, mistake(number, "AS%s and AS%s stand twice (first on line %d)", words[0], words[1], first)
		}
		if seen[pair] = number; len(seen) > MaxLinks {
			return nil, mistake(number, "more than %d links", MaxLinks)
		}
		b.graph.Links = append(b.graph.Links, l)
	}
	return b.finish()
}

func (b *builder) relation(words []string, line int) (l Link, err error) {
	if len(words) != 3 && len(words) != 4 {
		return l, mistake(line, "not CAIDA's AS relationships: expected AS|AS|RELATION, found %q", cut(strings.Join(words, "|")))
	}
	for i, word := range words[:2] {
		as, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return l, mistake(line, "expected the number of an autonomous system, found %q", cut(word))
		}
		if l.Ends[i], err = b.system(uint32(as), line); err != nil {
			return l, err
		}
	}
	switch words[2] {
	case "-1":
		l.Relation = Provider
	case "0":
		l.Relation = Peer
	default:
		return l, mistake(line, "relation %q; expected -1 (the first is the second's provider) or 0 (peers)", cut(words[2]))
	}
	if l.Ends[0] == l.Ends[1] {
		return l, mistake(line, "AS%s is its own neighbour", words[0])
	}
	return l, nil
}

// system finds or adds an autonomous system.
func (b *builder) system(as uint32, line int) (int, error) {
	id := fmt.Sprint(as)
	if n, ok := b.index[id]; ok {
		return n, nil
	}
	if err := b.node(id, []attribute{{key: "label", value: "AS" + id}}, line); err != nil {
		return 0, err
	}
	b.graph.Nodes[b.index[id]].AS = as
	return b.index[id], nil
}
