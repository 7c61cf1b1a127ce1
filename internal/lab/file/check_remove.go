package file

import "fmt"

// checkRemove leaves emulated links alone: their interfaces are the engine's, which holds them open.
func (f *File) checkRemove(a Action) error {
	links := f.linksBetween(a.Node, a.Peer)
	if len(links) == 0 {
		return fmt.Errorf("%q: no link between %q and %q", a, a.Node, a.Peer)
	}
	for _, link := range links {
		if link.Emulated != nil {
			return fmt.Errorf("%q: the link is emulated and its interfaces stay; unplug takes it down", a)
		}
	}
	return nil
}
