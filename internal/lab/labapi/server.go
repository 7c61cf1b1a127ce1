package labapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/v1/labv1connect"
)

// Config is what a server needs.
type Config struct {
	Token string                           // that callers must show, "" for none
	Dir   string                           // of the labs' state, lab.DefaultDir if empty
	Log   func(format string, args ...any) // what callers do to labs, for people; nil for none
}

// Path is where the calls are: a Server answers all below it.
const Path = "/" + labv1connect.LabName + "/"

// A Server answers calls; it is an http.Handler for what is below Path.
type Server struct {
	cfg   Config
	calls http.Handler
	busy  sync.WaitGroup // calls that are being answered

	mu      sync.Mutex
	raised  []string        // labs that were brought up here and are still up, as far as is known
	running map[int]command // that calls wait for, by pid
}

// calls are the methods of the schema's service.
type calls struct{ *Server }

var _ labv1connect.LabHandler = calls{}

// options of all calls. Nothing leaves the machine, so nothing is compressed. No call is marked as free of side effects in
// the schema, so none is answered to a GET, which any page may send; and what a page may post without asking, which is
// text and forms, has no codec.
func options() []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithReadMaxBytes(maxMessage), connect.WithCompression("gzip", nil, nil), connect.WithInterceptors(coder{}),
		connect.WithCodec(codec{"json"}), connect.WithCodec(codec{"json; charset=utf-8"}),
	}
}

// New makes a server. Serve it, then call Finish.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, running: map[int]command{}}
	if s.cfg.Log == nil {
		s.cfg.Log = func(string, ...any) {}
	}
	_, s.calls = labv1connect.NewLabHandler(calls{s}, options()...)
	return s
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Done()
	w.Header().Set("Cache-Control", "no-store")
	if err := cmp.Or(s.admit(r), check(r)); err != nil {
		fail(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxCall)
	s.calls.ServeHTTP(w, r)
}

// Finish waits until what the last calls began is done or undone, which their contexts must have told them to be. With
// down it takes down the labs that were brought up here.
func (s *Server) Finish(down bool) error {
	s.busy.Wait()
	var errs []error
	for _, name := range s.up() {
		if !down {
			break
		}
		s.cfg.Log("lab %s: down", name)
		if err := lab.Down(context.Background(), name, s.options(nil)); err != nil && !errors.Is(err, lab.ErrNone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Server) options(log func(string, ...any)) lab.Options {
	return lab.Options{Dir: s.cfg.Dir, Log: log}
}

// open visits a lab that is up.
func (s *Server) open(name string) (*lab.Lab, error) { return s.openLogged(name, nil) }

func (s *Server) openLogged(name string, log func(string, ...any)) (*lab.Lab, error) {
	if err := file.CheckName(name); err != nil {
		return nil, notFound("%w", err)
	}
	return lab.Open(name, s.options(log))
}

func (s *Server) up() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.raised)
}

// remember notes that a lab is up, or that it is not any more.
func (s *Server) remember(name string, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raised = slices.DeleteFunc(s.raised, func(other string) bool { return other == name })
	if up {
		s.raised = append(s.raised, name)
	}
}
