package chaos

import (
	"slices"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A World is what a lab has that can be broken.
type World struct {
	Controller string
	Routers    []string
	Hosts      []string
	Servers    []string            // hosts that serve
	Uplinks    map[string][]string // of a host: the routers that it hangs on; with two it can move
	Trunks     [][2]string         // emulated links between routers
}

// WorldOf reads a lab file; hosts whose name begins with s serve.
func WorldOf(f *file.File) World {
	w := World{Uplinks: map[string][]string{}}
	kind := map[string]file.Kind{}
	for _, n := range f.Nodes {
		kind[n.Name] = n.Kind
		switch n.Kind {
		case file.Controller:
			w.Controller = n.Name
		case file.Router:
			w.Routers = append(w.Routers, n.Name)
		case file.Host:
			w.Hosts = append(w.Hosts, n.Name)
			if n.Name[0] == 's' {
				w.Servers = append(w.Servers, n.Name)
			}
		}
	}
	for _, l := range f.Links {
		a, b := l.Ends[0], l.Ends[1]
		if kind[b] == file.Host {
			a, b = b, a
		}
		switch {
		case kind[a] == file.Host && kind[b] == file.Router:
			w.Uplinks[a] = append(w.Uplinks[a], b)
		case l.Emulated != nil && kind[a] == file.Router && kind[b] == file.Router:
			w.Trunks = append(w.Trunks, [2]string{a, b})
		}
	}
	return w
}

// Clients are the hosts that do not serve.
func (w World) Clients() []string {
	return slices.DeleteFunc(slices.Clone(w.Hosts), func(h string) bool { return slices.Contains(w.Servers, h) })
}

// movers are the hosts of a list that have two uplinks.
func (w World) movers(hosts []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return len(w.Uplinks[h]) != 2 })
}
