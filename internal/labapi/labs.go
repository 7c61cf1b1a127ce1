package labapi

import (
	"errors"
	"net/http"
	"os"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/obs"
)

// About says what answers.
type About struct {
	Version string `json:"version"` // of scaffold
	API     int    `json:"api"`     // the number in the paths
	PID     int    `json:"pid"`     // of the server
}

func (s *Server) about(http.ResponseWriter, *http.Request) (any, error) {
	return About{obs.Version(), 1, os.Getpid()}, nil
}

// A FileRequest carries a lab file.
type FileRequest struct {
	Source string `json:"source"` // YAML, or JSON, which is YAML
	Path   string `json:"path"`   // of the file, absolute: for messages, for what it names, and its name is the lab's where the source has none
	Name   string `json:"name"`   // of the lab, in place of the file's
	Plane  string `json:"plane"`  // "linux", "openflow" or "emulated" in place of the file's
}

func (q FileRequest) file() (*lab.File, error) {
	if q.Source == "" {
		return nil, bad("no lab file: expected its text as \"source\"")
	}
	if q.Path == "" {
		q.Path = "lab"
	}
	f, err := lab.Parse(q.Path, []byte(q.Source))
	if err != nil {
		return nil, err
	}
	if q.Name != "" {
		if err := lab.CheckName(q.Name); err != nil {
			return nil, bad("%w", err)
		}
		f.Name = q.Name
	}
	if q.Plane != "" {
		if err := f.SetPlane(q.Plane); err != nil {
			return nil, bad("%w", err)
		}
	}
	return f, nil
}

func receiveFile(r *http.Request) (*lab.File, error) {
	var q FileRequest
	if err := receive(r, &q); err != nil {
		return nil, err
	}
	return q.file()
}

// Checked is what a good lab file holds.
type Checked struct {
	Name     string `json:"name"`
	Nodes    int    `json:"nodes"`
	Links    int    `json:"links"`
	Services int    `json:"services"`
}

func (s *Server) check(_ http.ResponseWriter, r *http.Request) (any, error) {
	f, err := receiveFile(r)
	if err != nil {
		return nil, err
	}
	return Checked{f.Name, len(f.Nodes), len(f.Links), len(f.Services)}, nil
}

// A Name is what the list of labs has where only names were asked for.
type Name struct {
	Name string `json:"name"`
}

func (s *Server) list(_ http.ResponseWriter, r *http.Request) (any, error) {
	names, err := lab.List(s.options(nil))
	if err != nil {
		return nil, err
	}
	if r.URL.Query().Has("names") {
		short := []Name{}
		for _, name := range names {
			short = append(short, Name{name})
		}
		return short, nil
	}
	labs := []*lab.Status{}
	for _, name := range names {
		status, err := s.statusOf(name)
		if errors.Is(err, lab.ErrNone) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		labs = append(labs, status)
	}
	return labs, nil
}

func (s *Server) statusOf(name string) (*lab.Status, error) {
	l, err := lab.Open(name, s.options(nil))
	if err != nil {
		return nil, err
	}
	return l.Status()
}

func (s *Server) status(_ http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	return l.Status()
}

// Raised is the last line of a lab that came up.
type Raised struct {
	Lab *lab.Status `json:"lab"`
}

// raise brings a lab up. When the caller goes away before it is, nothing is left of it.
func (s *Server) raise(w http.ResponseWriter, r *http.Request) (any, error) {
	f, err := receiveFile(r)
	if err != nil {
		return nil, err
	}
	s.cfg.Log("lab %s: up", f.Name)
	lines := newStream(w)
	l, err := lab.Up(r.Context(), f, s.options(lines.logf))
	if err != nil {
		return lines.end(nil, err)
	}
	s.remember(f.Name, true)
	status, err := l.Status()
	return lines.end(Raised{status}, err)
}

// Removed names labs that are gone.
type Removed struct {
	Removed []string `json:"removed"`
}

func (s *Server) drop(_ http.ResponseWriter, r *http.Request) (any, error) {
	name := r.PathValue("lab")
	if err := lab.CheckName(name); err != nil {
		return nil, notFound("%w", err)
	}
	s.cfg.Log("lab %s: down", name)
	if err := lab.Down(r.Context(), name, s.options(nil)); err != nil {
		return nil, err
	}
	s.remember(name, false)
	return Removed{[]string{name}}, nil
}

func (s *Server) dropAll(_ http.ResponseWriter, r *http.Request) (any, error) {
	s.cfg.Log("all labs: down")
	removed, err := lab.DownAll(r.Context(), s.options(nil))
	for _, name := range removed {
		s.remember(name, false)
	}
	if err != nil {
		return nil, err
	}
	return Removed{append([]string{}, removed...)}, nil
}
