package programs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// A recorder starts nothing and notes what it was to start.
type recorder struct {
	started *exec.Cmd
	running bool
}

func (r *recorder) Running(string, string) bool   { return r.running }
func (r *recorder) Environ(n *plan.Node) []string { return []string{"NODE=" + n.Name} }

func (r *recorder) LookPath(program string) (string, error) {
	if program == "missing" {
		return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
	}
	return "/usr/bin/" + program, nil
}

func (r *recorder) Spawn(_ *plan.Node, _ string, cmd *exec.Cmd) error {
	r.started = cmd
	return nil
}

func (r *recorder) Command(_ context.Context, argv ...string) (*exec.Cmd, error) {
	return exec.Command(argv[0], argv[1:]...), nil
}

const network = `
name: t
services: {web: {}}
nodes:
  ctl: controller
  r: {kind: router, service: true}
  h:
    kind: host
    programs:
      - name: httpd
        service: web
        run: "httpd -d ${dir} -b ${addr:web} ${node} ${lab} $$"
        env: {WHERE: "${dir}/x"}
        files: {conf/a: "I am ${node}, ${addr:web}", start: "#!/bin/sh"}
      - {name: alone, run: cat, start: manual}
      - {name: lost, run: missing, start: manual}
links: [[r, h]]
`

func of(t *testing.T) (*Programs, *recorder, *plan.Node) {
	t.Helper()
	f, err := file.Parse("t.yaml", []byte(network))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	s := New(Config{
		Plan: plan.Make(f), Dir: state.Dir{Base: t.TempDir(), Lab: "t"}, Binary: "/bin/scaffold", Processes: r,
		ServiceAddr: func(_ context.Context, name string) (string, error) {
			if name != "web" {
				return "", errors.New("no such service")
			}
			return "fd5c::7", nil
		},
	})
	return s, r, s.Plan.Node("h")
}

func TestAProgramGetsItsFilesAndItsVariables(t *testing.T) {
	s, r, h := of(t)
	if err := s.Start(t.Context(), h, h.Program("httpd")); err != nil {
		t.Fatal(err)
	}
	dir := s.Dir.Program("h", "httpd")
	want := []string{"/bin/scaffold", "run", "--service", "web", "--", "/usr/bin/httpd", "-d", dir, "-b", "fd5c::7", "h", "t"}
	if got := r.started.Args; len(got) != len(want)+1 || !slices.Equal(got[:len(want)], want) || r.started.Dir != dir {
		t.Errorf("started %q in %s, want %q", got, r.started.Dir, want)
	}
	if !slices.Equal(r.started.Env, []string{"NODE=h", "WHERE=" + dir + "/x"}) {
		t.Errorf("environment %q", r.started.Env)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "conf/a")); string(text) != "I am h, fd5c::7" {
		t.Errorf("conf/a: %q, %v", text, err)
	}
	for name, want := range map[string]os.FileMode{"conf/a": 0, "start": 0o111} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode()&0o111 != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestAProgramOfNoServiceIsStartedAsItIs(t *testing.T) {
	s, r, h := of(t)
	if err := s.Start(t.Context(), h, h.Program("alone")); err != nil || !slices.Equal(r.started.Args, []string{"/usr/bin/cat"}) {
		t.Errorf("started %v, %v", r.started, err)
	}
	s.Stub = true
	if err := s.Start(t.Context(), h, h.Program("httpd")); err != nil || r.started.Args[0] != "/usr/bin/httpd" {
		t.Errorf("without a network: %v, %v", r.started, err)
	}
}

func TestWhatCannotStartIsNamed(t *testing.T) {
	s, r, h := of(t)
	if err := s.Start(t.Context(), h, h.Program("lost")); !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "h/lost: ") {
		t.Errorf("a program that is not there: %v", err)
	}
	r.running = true
	if err := s.Start(t.Context(), h, h.Program("alone")); err == nil || err.Error() != "h/alone runs already" || r.started != nil {
		t.Errorf("a program that runs: %v", err)
	}
}

func TestACommandKnowsItsNode(t *testing.T) {
	s, _, h := of(t)
	cmd, err := s.Command(t.Context(), h, []string{"curl", "http://[${addr:web}]/", "${dir}"})
	if err != nil || !slices.Equal(cmd.Args, []string{"curl", "http://[fd5c::7]/", s.Dir.Node("h")}) {
		t.Errorf("%v, %v", cmd, err)
	}
	if _, err := s.Command(t.Context(), h, []string{"curl", "${addr:db}"}); err == nil || !strings.Contains(err.Error(), "no such service") {
		t.Errorf("of a service that is not there: %v", err)
	}
}
