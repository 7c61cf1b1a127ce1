package labapi

import (
	"context"
	"io"
	"os"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// maxLog is how much of the end of a log is sent.
const maxLog = 16 << 20

// GetLog is what a program or daemon of a node printed.
func (s calls) GetLog(_ context.Context, q *labv1.GetLogRequest) (*labv1.Log, error) {
	l, err := s.open(q.Lab)
	if err != nil {
		return nil, err
	}
	status, err := l.Status()
	if err != nil {
		return nil, err
	}
	for _, n := range status.Nodes {
		for _, p := range n.Processes {
			if n.Name == q.Node && p.Name == q.Program {
				return tail(p.Log)
			}
		}
	}
	return nil, notFound("lab %s has no program %q on a node %q", l.File.Name, q.Program, q.Node)
}

func tail(path string) (*labv1.Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-maxLog), maxLog))
	return &labv1.Log{Text: valid(string(text))}, err
}
