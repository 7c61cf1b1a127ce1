package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// Processes start programs inside nodes.
type Processes interface {
	LookPath(program string) (string, error)
	Environ(n *plan.Node) []string
	Command(ctx context.Context, argv ...string) (*exec.Cmd, error)
	Spawn(n *plan.Node, name string, cmd *exec.Cmd) error
	Running(node, name string) bool
}

// A Config is what programs of a lab file are started with.
type Config struct {
	Plan        *plan.Plan
	Dir         state.Dir
	Binary      string // the scaffold that makes a program part of a service
	Processes   Processes
	ServiceAddr func(ctx context.Context, name string) (string, error)
	Stub        bool // tests: there is no network that a program could be part of
}

// Programs are those of one lab file.
type Programs struct {
	Config
}

// New starts nothing.
func New(c Config) *Programs { return &Programs{c} }

// Start writes a program's files and starts it.
func (s *Programs) Start(ctx context.Context, n *plan.Node, p *file.Program) error {
	if s.Processes.Running(n.Name, p.Name) {
		return fmt.Errorf("%s/%s runs already", n.Name, p.Name)
	}
	value, err := s.values(ctx, n, s.Dir.Program(n.Name, p.Name), p.Texts())
	if err != nil {
		return fmt.Errorf("%s/%s: %w", n.Name, p.Name, err)
	}
	if err := s.writeFiles(n, p, value); err != nil {
		return fmt.Errorf("%s/%s: %w", n.Name, p.Name, err)
	}
	argv := make([]string, len(p.Argv))
	for i, word := range p.Argv {
		argv[i] = file.Substitute(word, value)
	}
	if argv[0], err = s.Processes.LookPath(argv[0]); err != nil {
		return fmt.Errorf("%s/%s: %w", n.Name, p.Name, err)
	}
	if p.Service != "" && !s.Stub {
		argv = append([]string{s.Binary, "run", "--service", p.Service, "--"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.Dir.Program(n.Name, p.Name)
	cmd.Env = s.Processes.Environ(n)
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Key+"="+file.Substitute(e.Value, value))
	}
	return s.Processes.Spawn(n, p.Name, cmd)
}

func (s *Programs) writeFiles(n *plan.Node, p *file.Program, value func(string) string) error {
	dir := s.Dir.Program(n.Name, p.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range p.Files {
		path, mode := filepath.Join(dir, f.Key), os.FileMode(0o644)
		if strings.HasPrefix(f.Value, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.Substitute(f.Value, value)), mode); err != nil {
			return err
		}
	}
	return nil
}

// values looks up the variables that texts use; the address of a service is the controller's to say.
func (s *Programs) values(ctx context.Context, n *plan.Node, dir string, texts []string) (func(string) string, error) {
	known := map[string]string{"dir": dir, "node": n.Name, "lab": s.Plan.File.Name}
	for _, v := range file.Variables(strings.Join(texts, "\n")) {
		name, isAddr := strings.CutPrefix(v, "addr:")
		if !isAddr || known[v] != "" {
			continue
		}
		addr, err := s.ServiceAddr(ctx, name)
		if err != nil {
			return nil, err
		}
		known[v] = addr
	}
	return func(name string) string { return known[name] }, nil
}

// Command prepares a command of the file, its variables replaced.
func (s *Programs) Command(ctx context.Context, n *plan.Node, argv []string) (*exec.Cmd, error) {
	value, err := s.values(ctx, n, s.Dir.Node(n.Name), argv)
	if err != nil {
		return nil, err
	}
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = file.Substitute(word, value)
	}
	return s.Processes.Command(ctx, words...)
}
