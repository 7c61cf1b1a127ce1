package lab

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/emu"
)

// EmulatedLink is one link of the engine.
type EmulatedLink struct {
	Ends   [2]string        `json:"ends"`
	Lines  [2]emu.LineStats `json:"lines"`            // Lines[0] from Ends[0] to Ends[1]
	Causes []string         `json:"causes,omitempty"` // for which the engine loses all of its packets

	cable int // its number among all links
}

// EmulatedLinks are all links of the engine, in the order of the file.
type EmulatedLinks []EmulatedLink

// Emulated asks the engine for the present parameters and counters of its links; there are none in a
// lab without any.
func (l *Lab) Emulated() (EmulatedLinks, error) {
	client := l.Engine()
	if client == nil {
		return nil, nil
	}
	links, err := client.Links(context.Background())
	if err != nil {
		return nil, l.engineError(err)
	}
	var all EmulatedLinks
	for i, c := range l.plan.Cable {
		if c.Emulated != nil && len(all) < len(links) {
			s := links[len(all)]
			all = append(all, EmulatedLink{c.Ends, s.Lines, s.Causes, i})
		}
	}
	return all, nil
}

// engineError says where to look.
func (l *Lab) engineError(err error) error {
	return fmt.Errorf("%w (its log is %s)", err, l.enginePath(".log"))
}

// Between are the links that join two nodes, in any order.
func (e EmulatedLinks) Between(a, b string) (found EmulatedLinks) {
	for _, l := range e {
		if l.Ends == [2]string{a, b} || l.Ends == [2]string{b, a} {
			found = append(found, l)
		}
	}
	return found
}

// params are the present parameters of the cable with a number, nil if it is not emulated.
func (e EmulatedLinks) params(cable int) *[2]string {
	if l := e.cable(cable); l != nil {
		return &[2]string{l.Lines[0].Params.String(), l.Lines[1].Params.String()}
	}
	return nil
}

// setLink changes what is between two nodes, from what it is now.
func (l *Lab) setLink(ctx context.Context, a Action) error {
	links, err := l.Emulated()
	if err != nil {
		return err
	}
	for i, link := range links {
		if link.Ends != [2]string{a.Node, a.Peer} && link.Ends != [2]string{a.Peer, a.Node} {
			continue
		}
		p := [2]emu.Params{link.Lines[0].Params, link.Lines[1].Params}
		for _, s := range a.Set {
			if err := setWay(&p, link.Ends, a.from(), s); err != nil {
				return err
			}
		}
		if _, err := l.Engine().SetParams(ctx, i, p); err != nil {
			return err
		}
	}
	return nil
}
