package emud

import (
	"context"

	"scaffold.dev/scaffold/emu"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// ListLinks tells the present state of all links.
func (e server) ListLinks(context.Context, *emudv1.ListLinksRequest) (*emudv1.ListLinksResponse, error) {
	all := &emudv1.ListLinksResponse{}
	for _, l := range e.links {
		s, err := e.linkState(l)
		if err != nil {
			return nil, err
		}
		all.Links = append(all.Links, s)
	}
	return all, nil
}

// GetLink tells that of one.
func (e server) GetLink(_ context.Context, q *emudv1.GetLinkRequest) (*emudv1.Link, error) {
	l, err := e.linkAt(q.Link)
	if err != nil {
		return nil, err
	}
	return e.linkState(l)
}

func (e *engine) linkState(l *link) (*emudv1.Link, error) {
	lines, err := l.Stats()
	if err != nil {
		return nil, err
	}
	s := &emudv1.Link{Link: int32(l.number)}
	for side, end := range l.cfg.Ends {
		s.Ends = append(s.Ends, &emudv1.LinkEnd{Node: end.Node, Inside: end.Router, Line: lineMessage(lines[side])})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Causes = append(s.Causes, l.causes...)
	return s, nil
}

// SetParams changes a link for the packets to come.
func (e server) SetParams(_ context.Context, q *emudv1.SetParamsRequest) (*emudv1.Link, error) {
	l, err := e.linkAt(q.Link)
	if err != nil {
		return nil, err
	}
	p := [2]emu.Params{paramsOf(q.There), paramsOf(q.Back)}
	for _, one := range p {
		if err := bad(one.Validate()); err != nil {
			return nil, err
		}
	}
	if err := l.setParams(e.engine, p); err != nil {
		return nil, err
	}
	return e.linkState(l)
}
