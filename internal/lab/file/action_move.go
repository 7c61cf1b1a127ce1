package file

import (
	"fmt"
	"time"
)

// maxGap bounds the gap of a move.
const maxGap = time.Hour

// parseMove reads "h r1 r2", "h r1 r2 gap 300ms" and "h r1 r2 gap 300ms first".
func (a *Action) parseMove(words []string) bool {
	if len(words) < 3 {
		return false
	}
	a.Node, a.Peer, a.To = words[0], words[1], words[2]
	words = words[3:]
	if len(words) >= 2 && words[0] == "gap" {
		gap, err := time.ParseDuration(words[1])
		if err != nil || gap < 0 || gap > maxGap {
			return false
		}
		a.Gap, words = gap, words[2:]
	}
	if len(words) == 1 && words[0] == "first" {
		a.First, words = true, nil
	}
	return len(words) == 0
}

func (a Action) moveString() string {
	text := "move " + a.Node + " " + a.Peer + " " + a.To
	if a.Gap > 0 {
		text += " gap " + a.Gap.String()
	}
	if a.First {
		text += " first"
	}
	return text
}

func (f *File) checkMove(a Action, n *Node) error {
	switch {
	case !n.Kind.IsHost():
		return fmt.Errorf("%q: %q is a %s; expected a host", a, a.Node, n.Kind)
	case a.Peer == a.To:
		return fmt.Errorf("%q: from %q to the same node", a, a.Peer)
	}
	for _, far := range []string{a.Peer, a.To} {
		if len(f.linksBetween(a.Node, far)) == 0 {
			return fmt.Errorf("%q: no link between %q and %q; a link with unplugged: true waits for a move", a, a.Node, far)
		}
	}
	return nil
}
