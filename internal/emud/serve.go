package emud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxBody bounds what a question may bring, replays aside.
const maxBody = 16 << 20

// handler serves the API; quit ends the process.
func (e *engine) handler(quit context.CancelFunc) http.Handler {
	m := http.NewServeMux()
	answer := func(pattern string, f func(*http.Request) (any, error)) {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { reply(w, r, f) })
	}
	answer("GET /v1/links", e.listLinks)
	answer("GET /v1/links/{link}", e.showLink)
	answer("PUT /v1/links/{link}/params", e.setParams)
	answer("GET /v1/routers", e.listRouters)
	answer("GET /v1/routers/{router}", e.showRouter)
	answer("PUT /v1/routers/{router}/program", e.swap)
	answer("PUT /v1/routers/{router}/shard", e.move)
	answer("POST /v1/balance", e.balance)
	answer("GET /v1/routers/{router}/handlers", e.listHandlers)
	answer("GET /v1/routers/{router}/handlers/{handler}", e.getHandler)
	answer("PUT /v1/routers/{router}/handlers/{handler}", e.setHandler)
	m.HandleFunc("GET /v1/links/{link}/pcap", e.capture)
	m.HandleFunc("POST /v1/links/{link}/replay", e.replay)
	answer("GET /v1/certificate", e.certify)
	answer("GET /v1/routes", e.showRoutes)
	answer("POST /v1/faults", e.change)
	answer("GET /v1/programs", func(*http.Request) (any, error) { return e.programs.names(), nil })
	answer("POST /v1/shutdown", func(*http.Request) (any, error) { quit(); return nil, nil })
	return m
}

// A refusal is an error of who asks, with the status that says so.
type refusal struct {
	status int
	error
}

func (r *refusal) Unwrap() error { return r.error }

func notFound(format string, args ...any) error {
	return &refusal{http.StatusNotFound, fmt.Errorf(format, args...)}
}

func bad(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{http.StatusBadRequest, err}
}

// A Problem is the body of an answer that is an error.
type Problem struct {
	Error string `json:"error"`
}

func reply(w http.ResponseWriter, r *http.Request, f func(*http.Request) (any, error)) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	body, err := f(r)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		fail(w, err)
		return
	}
	write(w, body)
}

func write(w io.Writer, body any) {
	json.NewEncoder(w).Encode(body) //nolint:errcheck // who asked went away
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var refused *refusal
	if errors.As(err, &refused) {
		status = refused.status
	}
	w.WriteHeader(status)
	write(w, Problem{err.Error()})
}

// read takes a question's JSON apart.
func read(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return bad(fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
	}
	return nil
}

func (e *engine) linkOf(r *http.Request) (int, *link, error) {
	n, err := strconv.Atoi(r.PathValue("link"))
	if err != nil || n < 0 || n >= len(e.links) {
		return 0, nil, notFound("no link %q; there are %d, numbered from 0", r.PathValue("link"), len(e.links))
	}
	return n, e.links[n], nil
}

func (e *engine) routerOf(r *http.Request) (*router, error) { return e.find(r.PathValue("router")) }

func (e *engine) find(name string) (*router, error) {
	if r := e.routers[name]; r != nil {
		return r, nil
	}
	return nil, notFound("no router %q inside the engine, which has %d", name, len(e.order))
}
