package emud

import (
	"net/http"

	"scaffold.dev/scaffold/emu"
)

func (e *engine) listLinks(*http.Request) (any, error) {
	all := make([]LinkState, 0, len(e.links))
	for i, l := range e.links {
		s, err := e.linkState(i, l)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (e *engine) showLink(r *http.Request) (any, error) {
	i, l, err := e.linkOf(r)
	if err != nil {
		return nil, err
	}
	return e.linkState(i, l)
}

func (e *engine) linkState(i int, l *link) (LinkState, error) {
	s := LinkState{Link: i}
	for side, end := range l.cfg.Ends {
		s.Ends[side], s.Inside[side] = end.Node, end.Router
	}
	e.mu.Lock()
	s.Causes = append(s.Causes, l.causes...)
	e.mu.Unlock()
	var err error
	s.Lines, err = l.Stats()
	return s, err
}

// setParams changes a link for the packets to come.
func (e *engine) setParams(r *http.Request) (any, error) {
	i, l, err := e.linkOf(r)
	if err != nil {
		return nil, err
	}
	var p [2]emu.Params
	if err := read(r, &p); err != nil {
		return nil, err
	}
	for _, one := range p {
		if err := bad(one.Validate()); err != nil {
			return nil, err
		}
	}
	if err := l.Set(p); err != nil {
		return nil, err
	}
	return e.linkState(i, l)
}
