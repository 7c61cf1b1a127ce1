package labapi

import (
	"io"
	"net/http"
	"os"
)

// maxLog is how much of the end of a log is sent.
const maxLog = 16 << 20

// log sends what a program or daemon of a node printed, as text.
func (s *Server) log(w http.ResponseWriter, r *http.Request) (any, error) {
	l, err := s.open(r)
	if err != nil {
		return nil, err
	}
	status, err := l.Status()
	if err != nil {
		return nil, err
	}
	node, program := r.PathValue("node"), r.PathValue("program")
	for _, n := range status.Nodes {
		for _, p := range n.Processes {
			if n.Name == node && p.Name == program {
				return nil, sendLog(w, p.Log)
			}
		}
	}
	return nil, notFound("lab %s has no program %q on a node %q", l.File.Name, program, node)
}

func sendLog(w http.ResponseWriter, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	io.Copy(w, io.NewSectionReader(f, max(0, info.Size()-maxLog), maxLog)) //nolint:errcheck // the other side went away
	return nil
}
