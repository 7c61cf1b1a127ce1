package emud

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"scaffold.dev/scaffold/emu"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// handlers are those of a router's program and those that every router has; to be called on the router's thread.
func (r *router) handlers() map[string]emu.Handler {
	all := map[string]emu.Handler{
		"counters": {Get: r.counters, Doc: "packets so far, as JSON: in, dropped, down, refused, local, made, starved"},
		"program":  {Get: func() (string, error) { return r.program, nil }, Doc: "the program that the router runs"},
		"failure":  {Get: r.lastFailure, Doc: "what its program panicked with, empty while it runs"},
	}
	if p, ok := r.Program().(emu.Handled); ok {
		maps.Copy(all, p.Handlers(r.Router))
	}
	return all
}

func (r *router) counters() (string, error) {
	text, err := json.Marshal(r.Counters())
	return string(text), err
}

func (r *router) lastFailure() (string, error) {
	if err := r.Failure(); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// ListHandlers tells what can be read or written of a router.
func (e server) ListHandlers(_ context.Context, q *emudv1.ListHandlersRequest) (*emudv1.ListHandlersResponse, error) {
	r, err := e.find(q.Router)
	if err != nil {
		return nil, err
	}
	list := &emudv1.ListHandlersResponse{}
	err = e.net.Do(r.Router, func() {
		all := r.handlers()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			h := all[name]
			list.Handlers = append(list.Handlers, &emudv1.Handler{Name: text(name), Doc: text(h.Doc), Read: h.Get != nil, Write: h.Set != nil})
		}
	})
	return list, err
}

// handle finds a handler and uses it, on the router's thread.
func (e server) handle(router, name string, use func(emu.Handler) error) error {
	r, err := e.find(router)
	if err != nil {
		return err
	}
	asked := e.net.Do(r.Router, func() {
		all := r.handlers()
		h, ok := all[name]
		if !ok {
			err = notFound("router %s has no handler %q; it has %s", r.Name(), name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
			return
		}
		err = use(h)
	})
	if asked != nil {
		return asked
	}
	return err
}

// GetHandler reads one.
func (e server) GetHandler(_ context.Context, q *emudv1.GetHandlerRequest) (*emudv1.GetHandlerResponse, error) {
	value := ""
	err := e.handle(q.Router, q.Handler, func(h emu.Handler) (err error) {
		if h.Get == nil {
			return bad(fmt.Errorf("handler %q can only be set", q.Handler))
		}
		value, err = h.Get()
		return err
	})
	return &emudv1.GetHandlerResponse{Value: text(value)}, err
}

// SetHandler writes one.
func (e server) SetHandler(_ context.Context, q *emudv1.SetHandlerRequest) (*emudv1.SetHandlerResponse, error) {
	err := e.handle(q.Router, q.Handler, func(h emu.Handler) error {
		if h.Set == nil {
			return bad(fmt.Errorf("handler %q can only be read", q.Handler))
		}
		return bad(h.Set(q.Value))
	})
	return &emudv1.SetHandlerResponse{}, err
}
