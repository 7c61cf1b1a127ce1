package plan

// Parts says which part each node belongs to, by breadth from those that are named. With one part alone all others
// are the second.
func (p *Plan) Parts(named [][]string) map[*Node]int {
	of := map[*Node]int{}
	var queue []*Node
	for i, part := range named {
		for _, name := range part {
			of[p.Node(name)] = i
			queue = append(queue, p.Node(name))
		}
	}
	if len(named) == 1 {
		for _, n := range p.Nodes {
			if _, ok := of[n]; !ok {
				of[n] = 1
			}
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, port := range queue[0].Ports {
			if _, ok := of[port.Far]; !ok {
				of[port.Far] = of[queue[0]]
				queue = append(queue, port.Far)
			}
		}
	}
	return of
}
