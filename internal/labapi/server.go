package labapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"scaffold.dev/scaffold/internal/lab"
)

// Config is what a server needs.
type Config struct {
	Token string                           // that callers must show, "" for none
	Dir   string                           // of the labs' state, lab.DefaultDir if empty
	Log   func(format string, args ...any) // what callers do to labs, for people; nil for none
}

// A Server answers requests; it is an http.Handler for all paths below /v1.
type Server struct {
	cfg  Config
	mux  *http.ServeMux
	busy sync.WaitGroup // requests that are being answered

	mu       sync.Mutex
	raised   []string        // labs that were brought up here and are still up, as far as is known
	commands map[int]command // that requests wait for, by pid
}

// New makes a server. Serve it, then call Finish.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, mux: http.NewServeMux(), commands: map[int]command{}}
	if s.cfg.Log == nil {
		s.cfg.Log = func(string, ...any) {}
	}
	s.routes()
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Done()
	if err := s.admit(r); err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	s.route(w, r)
}

// Finish waits until what the last requests began is done or undone, which their contexts must have told them to
// be. With down it takes down the labs that were brought up here.
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

// open visits the lab that the path names.
func (s *Server) open(r *http.Request) (*lab.Lab, error) {
	return s.openLogged(r, nil)
}

func (s *Server) openLogged(r *http.Request, log func(string, ...any)) (*lab.Lab, error) {
	name := r.PathValue("lab")
	if err := lab.CheckName(name); err != nil {
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
