package emu

// Balance measures what has passed since it was called last, and moves routers to where the busiest shard has
// less to do, if that is worth it. Pinned routers stay.
func (n *Net) Balance() (moves []Move, err error) {
	if len(n.shards) < 2 {
		return nil, nil
	}
	load, routers, err := n.measure()
	if err != nil {
		return nil, err
	}
	now := make([]int, len(load.Work))
	for i, r := range routers {
		now[i] = r.shard.number
	}
	a := &assignment{load: load, shards: len(n.shards)}
	want := Assign(load, len(n.shards))
	if a.cost(want) > a.cost(now)*(1-worthMoving) {
		return nil, nil
	}
	for i, r := range routers {
		if want[i] != now[i] {
			moves = append(moves, Move{r, want[i]})
		}
	}
	return moves, n.Move(moves...)
}

// worthMoving is by how much the busiest shard must have less to do afterwards.
const worthMoving = 0.1

// measure is what each router did and what passed between each two since the last time. Edges and, in virtual time,
// what no delay keeps apart hold their routers where they are.
func (n *Net) measure() (l Load, routers []*Router, err error) {
	for _, r := range n.routers {
		fixed := -1
		if r.pinned > 0 {
			fixed = r.shard.number
		}
		l.Work, l.Fixed, routers = append(l.Work, 0), append(l.Fixed, fixed), append(routers, r)
		if err := n.Do(r, func() {
			l.Work[r.number] = float64(r.count.In + r.count.Made - r.counted)
			r.counted = r.count.In + r.count.Made
		}); err != nil {
			return l, nil, err
		}
	}
	for _, link := range n.links {
		a, b := numberOf(link.nodes[0]), numberOf(link.nodes[1])
		passed := 0.0
		for _, w := range link.ways {
			if err := w.near.ask(func() {
				passed += float64(w.line.count.Packets - w.counted)
				w.counted = w.line.count.Packets
			}); err != nil {
				return l, nil, err
			}
		}
		if a >= 0 && b >= 0 {
			l.Pairs = append(l.Pairs, Traffic{a, b, passed})
		}
		n.hold(&l, link)
	}
	return l, routers, nil
}

// hold fixes routers that can not be parted from what is at the other end of a link.
func (n *Net) hold(l *Load, link *Link) {
	if n.opt.Virtual && min(link.ways[0].line.p.latency(), link.ways[1].line.p.latency()) > 0 {
		return
	}
	for i, node := range link.nodes {
		r, ok := node.(*Router)
		_, edge := link.nodes[1-i].(*Edge)
		if ok && (n.opt.Virtual || edge) {
			l.Fixed[r.number] = r.shard.number
		}
	}
}

func numberOf(n Node) int {
	if r, ok := n.(*Router); ok {
		return r.number
	}
	return -1
}
