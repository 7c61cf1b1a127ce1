package engine

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab/file"
)

// A Link is one link of the engine.
type Link struct {
	Ends   [2]string        `json:"ends"`
	Lines  [2]emu.LineStats `json:"lines"`            // Lines[0] from Ends[0] to Ends[1]
	Causes []string         `json:"causes,omitempty"` // for which the engine loses all of its packets

	cable int // its number among all links
}

// Links are all links of the engine, in the order of the file.
type Links []Link

// Links asks the engine for the present parameters and counters of its links; there are none in a
// lab without any.
func (e *Engine) Links() (Links, error) {
	client := e.Client()
	if client == nil {
		return nil, nil
	}
	links, err := client.Links(context.Background())
	if err != nil {
		return nil, e.where(err)
	}
	var all Links
	for i, c := range e.plan.Cable {
		if c.Emulated != nil && len(all) < len(links) {
			s := links[len(all)]
			all = append(all, Link{c.Ends, s.Lines, s.Causes, i})
		}
	}
	return all, nil
}

// where says where to look.
func (e *Engine) where(err error) error {
	return fmt.Errorf("%w (its log is %s)", err, e.path(".log"))
}

// Between are the links that join two nodes, in any order.
func (all Links) Between(a, b string) (found Links) {
	for _, l := range all {
		if l.Ends == [2]string{a, b} || l.Ends == [2]string{b, a} {
			found = append(found, l)
		}
	}
	return found
}

// Cable is the link that has a number among all links of the lab; nil if that is none of the engine's.
func (all Links) Cable(number int) *Link {
	for i := range all {
		if all[i].cable == number {
			return &all[i]
		}
	}
	return nil
}

// Params are the present parameters, there and back.
func (l *Link) Params() [2]string {
	return [2]string{l.Lines[0].Params.String(), l.Lines[1].Params.String()}
}

// SetLink changes what is between two nodes, from what it is now.
func (e *Engine) SetLink(ctx context.Context, a file.Action) error {
	links, err := e.Links()
	if err != nil {
		return err
	}
	for i, link := range links {
		if link.Ends != [2]string{a.Node, a.Peer} && link.Ends != [2]string{a.Peer, a.Node} {
			continue
		}
		p := [2]emu.Params{link.Lines[0].Params, link.Lines[1].Params}
		for _, s := range a.Set {
			if err := file.SetWay(&p, link.Ends, a.From(), s); err != nil {
				return err
			}
		}
		if _, err := e.Client().SetParams(ctx, i, p); err != nil {
			return err
		}
	}
	return nil
}
