package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"scaffold.dev/scaffold/emu"
)

// engineRequest asks the engine for the state of its links, after a change if Params are given.
type engineRequest struct {
	Link   int            `json:"link"`
	Params *[2]emu.Params `json:"params,omitempty"`
}

type engineReply struct {
	Links []emu.LinkStats `json:"links"`
	Error string          `json:"error,omitempty"`
}

// askTime bounds one question and its answer.
const askTime = 5 * time.Second

// serveEngine answers one request.
func serveEngine(e *emu.Engine, c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(askTime)) //nolint:errcheck // the socket is open
	var req engineRequest
	if json.NewDecoder(c).Decode(&req) != nil {
		return
	}
	var err error
	if req.Params != nil {
		err = e.Set(req.Link, *req.Params)
	}
	links, statErr := e.Stats()
	reply := engineReply{Links: links}
	if err = errors.Join(err, statErr); err != nil {
		reply.Error = err.Error()
	}
	json.NewEncoder(c).Encode(reply) //nolint:errcheck // the other side went away
}

func (l *Lab) askEngine(req engineRequest) ([]emu.LinkStats, error) {
	c, err := net.DialTimeout("unix", l.enginePath(".sock"), askTime)
	if err != nil {
		return nil, fmt.Errorf("the link engine does not answer (its log is %s): %w", l.enginePath(".log"), err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(askTime)) //nolint:errcheck // the socket is open
	if err := json.NewEncoder(c).Encode(req); err != nil {
		return nil, fmt.Errorf("ask the link engine: %w", err)
	}
	var reply engineReply
	if err := json.NewDecoder(c).Decode(&reply); err != nil {
		return nil, fmt.Errorf("ask the link engine: %w", err)
	}
	if reply.Error != "" {
		return nil, errors.New(reply.Error)
	}
	return reply.Links, nil
}

// EmulatedLink is one link of the engine.
type EmulatedLink struct {
	Ends  [2]string        `json:"ends"`
	Lines [2]emu.LineStats `json:"lines"` // Lines[0] from Ends[0] to Ends[1]

	cable int // its number among all links
}

// EmulatedLinks are all links of the engine, in the order of the file.
type EmulatedLinks []EmulatedLink

// Emulated asks the engine for the present parameters and counters of its links; there are none in a
// lab without any.
func (l *Lab) Emulated() (EmulatedLinks, error) {
	if l.engineConfig() == nil {
		return nil, nil
	}
	links, err := l.askEngine(engineRequest{})
	if err != nil {
		return nil, err
	}
	var all EmulatedLinks
	for i, c := range l.plan.Cable {
		if c.Emulated != nil && len(all) < len(links) {
			all = append(all, EmulatedLink{c.Ends, links[len(all)].Lines, i})
		}
	}
	return all, nil
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
	for _, l := range e {
		if l.cable == cable {
			return &[2]string{l.Lines[0].Params.String(), l.Lines[1].Params.String()}
		}
	}
	return nil
}

// setLink changes what is between two nodes, from what it is now.
func (l *Lab) setLink(a Action) error {
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
		if _, err := l.askEngine(engineRequest{Link: i, Params: &p}); err != nil {
			return err
		}
	}
	return nil
}
