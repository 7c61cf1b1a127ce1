package emud

import (
	"context"
	"errors"
	"fmt"
	"slices"

	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// ChangeFaults carries out faults and repairs together: routes are computed once for all of them.
func (e server) ChangeFaults(_ context.Context, q *emudv1.ChangeFaultsRequest) (*emudv1.Routes, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var apply []func() error
	for _, m := range q.Changes {
		do, err := e.fault(faultOf(m))
		if err != nil {
			return nil, err // nothing has been changed yet
		}
		apply = append(apply, do)
	}
	for _, do := range apply {
		if err := do(); err != nil {
			return nil, err
		}
	}
	e.changed(len(q.Changes))
	return routesMessage(e.routes.Routes), nil
}

// fault finds what a change is about; what it returns carries it out.
func (e *engine) fault(f Fault) (do func() error, err error) {
	switch {
	case f.Link != nil && f.Router != "":
		return nil, bad(errors.New("a fault of a link and of a router: expected one of the two"))
	case f.Link != nil:
		return e.linkFault(f)
	case f.Router == "":
		return nil, bad(errors.New("a fault of nothing: expected a link or a router"))
	}
	r, err := e.find(f.Router)
	if err != nil {
		return nil, err
	}
	if f.Port == nil {
		return func() error { return e.setRouter(r, f.Down) }, nil
	}
	if *f.Port < 0 || *f.Port >= len(r.ports) {
		return nil, notFound("router %s has no port %d; it has %d, numbered from 0", f.Router, *f.Port, len(r.ports))
	}
	return func() error {
		p := r.ports[*f.Port]
		p.failed = f.Down
		p.link.update()
		return nil
	}, nil
}

func (e *engine) linkFault(f Fault) (func() error, error) {
	if *f.Link < 0 || *f.Link >= len(e.links) {
		return nil, notFound("no link %d; there are %d, numbered from 0", *f.Link, len(e.links))
	}
	if f.Cause == "" {
		f.Cause = CauseFail
	}
	if !slices.Contains([]string{CauseFail, CauseCut, CauseUnplug, CausePartition}, f.Cause) {
		return nil, bad(fmt.Errorf("cause %q; expected one of %s, %s, %s, %s", f.Cause, CauseFail, CauseCut, CauseUnplug, CausePartition))
	}
	l := e.links[*f.Link]
	return func() error {
		l.causes = slices.DeleteFunc(l.causes, func(c string) bool { return c == f.Cause })
		if f.Down {
			l.causes = append(l.causes, f.Cause)
		}
		l.update()
		return nil
	}, nil
}

// setRouter stops a router, or lets it go on. Its neighbours see their links go.
func (e *engine) setRouter(r *router, down bool) error {
	r.failed = down
	if err := e.net.Do(r.Router, func() { r.SetDown(down) }); err != nil {
		return err
	}
	for _, p := range r.ports {
		p.link.update()
	}
	return nil
}

// update lets packets pass if nothing is wrong with the link or at its ends.
func (l *link) update() {
	up := l.usable()
	l.SetUp([2]bool{up, up})
	for i, end := range l.ends {
		if end.router == nil {
			continue
		}
		if own := l.Ports()[i].Local(); own != nil {
			if err := own.SetCarrier(up || l.onlyCut()); err != nil {
				logf("link %d: %v", l.number, err)
			}
		}
	}
}

// onlyCut reports whether the link merely loses everything, as behind a dead switch: the carrier stays, and daemons
// have to find out.
func (l *link) onlyCut() bool {
	for _, end := range l.ends {
		if end.failed || end.router != nil && end.router.failed {
			return false
		}
	}
	return !slices.ContainsFunc(l.causes, func(c string) bool { return c != CauseCut && c != CausePartition })
}

func (l *link) usable() bool {
	for _, end := range l.ends {
		if end.failed || end.router != nil && end.router.failed {
			return false
		}
	}
	return len(l.causes) == 0
}
