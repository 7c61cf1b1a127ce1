package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// registerTime bounds how long a program may take from its start until its service has it.
const registerTime = 30 * time.Second

// startPrograms starts all programs that the timeline does not, and waits until those of a service
// are registered.
func (l *Lab) startPrograms(ctx context.Context) error {
	for _, n := range l.plan.Nodes {
		for _, p := range n.Programs {
			if p.Manual {
				continue
			}
			if err := l.startProgram(ctx, n, p); err != nil {
				return err
			}
		}
	}
	if l.opt.stub != nil || l.File.bare {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	return poll(ctx, func() error { return l.registered(ctx) })
}

// registered is an error that names the first started program whose service does not have it.
func (l *Lab) registered(ctx context.Context) error {
	admin, err := l.Admin()
	if err != nil {
		return err
	}
	list, err := admin.ListServices(ctx, connect.NewRequest(&apiv1.ListServicesRequest{}))
	if err != nil {
		return err
	}
	serves := map[string]bool{}
	for _, s := range list.Msg.Services {
		for _, i := range s.Instances {
			serves[s.Name+" "+i.Host] = true
		}
	}
	for _, n := range l.plan.Nodes {
		for _, p := range n.Programs {
			if p.Manual || p.Service == "" || serves[p.Service+" "+n.Name] {
				continue
			}
			if err := l.exited(n.Name, p.Name); err != nil && !l.running(n.Name, p.Name) {
				return &finalError{err}
			}
			return fmt.Errorf("%s/%s listens on no port of service %s; the end of its log:\n%s", n.Name, p.Name, p.Service, l.logTail(n.Name, p.Name))
		}
	}
	return nil
}

// startProgram writes a program's files and starts it.
func (l *Lab) startProgram(ctx context.Context, n *PlanNode, p *Program) error {
	if l.running(n.Name, p.Name) {
		return fmt.Errorf("%s/%s runs already", n.Name, p.Name)
	}
	value, err := l.values(ctx, n, l.ProgramDir(n.Name, p.Name), p.texts())
	if err != nil {
		return fmt.Errorf("%s/%s: %w", n.Name, p.Name, err)
	}
	if err := l.writeFiles(n, p, value); err != nil {
		return fmt.Errorf("%s/%s: %w", n.Name, p.Name, err)
	}
	argv := make([]string, len(p.Argv))
	for i, word := range p.Argv {
		argv[i] = substitute(word, value)
	}
	if argv[0], err = l.lookPath(argv[0]); err != nil {
		return fmt.Errorf("%s/%s: %w", n.Name, p.Name, err)
	}
	if p.Service != "" && l.opt.stub == nil {
		argv = append([]string{l.opt.Binary, "run", "--service", p.Service, "--"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = l.ProgramDir(n.Name, p.Name)
	cmd.Env = l.environ(n)
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Key+"="+substitute(e.Value, value))
	}
	return l.spawn(n, p.Name, cmd)
}

func (l *Lab) writeFiles(n *PlanNode, p *Program, value func(string) string) error {
	dir := l.ProgramDir(n.Name, p.Name)
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
		if err := os.WriteFile(path, []byte(substitute(f.Value, value)), mode); err != nil {
			return err
		}
	}
	return nil
}

// values looks up the variables that texts use; the address of a service is the controller's to say.
func (l *Lab) values(ctx context.Context, n *PlanNode, dir string, texts []string) (func(string) string, error) {
	known := map[string]string{"dir": dir, "node": n.Name, "lab": l.File.Name}
	for _, m := range variable.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		name, isAddr := strings.CutPrefix(m[1], "addr:")
		if !isAddr || known[m[1]] != "" {
			continue
		}
		addr, err := l.serviceAddr(ctx, name)
		if err != nil {
			return nil, err
		}
		known[m[1]] = addr
	}
	return func(name string) string { return known[name] }, nil
}

func (l *Lab) serviceAddr(ctx context.Context, name string) (string, error) {
	if l.opt.stub != nil {
		return "fd5c::1", nil
	}
	admin, err := l.Admin()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	address := ""
	err = poll(ctx, func() error {
		s, err := admin.GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: name}))
		switch {
		case err == nil:
			address = s.Msg.Address
			return nil
		case connect.CodeOf(err) == connect.CodeUnavailable: // perhaps it is being restarted
			return fmt.Errorf("address of service %s: %w", name, err)
		}
		return &finalError{fmt.Errorf("address of service %s: %w", name, err)}
	})
	return address, err
}
