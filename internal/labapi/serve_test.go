package labapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/labapi"
	"scaffold.dev/scaffold/internal/nstest"
)

// A served is a process of `scaffold lab serve`.
type served struct {
	Listen, Token string

	cmd   *exec.Cmd
	stdin io.Closer
	said  strings.Builder // on its second output; to be read when it has ended
	ended bool
}

func command(args ...string) *exec.Cmd {
	return exec.Command("/proc/self/exe", append([]string{"lab", "serve"}, args...)...)
}

func start(t *testing.T, args ...string) *served {
	t.Helper()
	nstest.Root(t)
	s := &served{cmd: command(append(args, "-o", "json")...)}
	s.cmd.Stderr = &s.said
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(t, syscall.SIGINT) })
	if err := json.NewDecoder(out).Decode(s); err != nil {
		s.cmd.Wait() //nolint:errcheck // it has said why
		s.ended = true
		t.Fatalf("%v\n%s", err, &s.said)
	}
	return s
}

// end sends a signal and waits; it must end in good order.
func (s *served) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if s.ended {
		return
	}
	s.ended = true
	if sig != 0 {
		s.cmd.Process.Signal(sig) //nolint:errcheck // it may have ended
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, &s.said)
	}
}

// ask asks over whatever it listens on.
func (s *served) ask(t *testing.T, method, path, token string, body string) (int, http.Header, string) {
	t.Helper()
	client, base := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, s.Listen
	if socket, ok := strings.CutPrefix(s.Listen, "unix:"); ok {
		base = "http://lab"
		client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}
	}
	q, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

func raised(t *testing.T, s *served, name string) {
	t.Helper()
	body, err := json.Marshal(labapi.FileRequest{Source: network, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if status, _, text := s.ask(t, "POST", "/v1/labs", s.Token, string(body)); status != 200 || !strings.Contains(text, `{"lab":`) {
		t.Fatalf("%d %s", status, text)
	}
}

func TestOverTCPItTakesTheTokenThatItPrinted(t *testing.T) {
	s := start(t, "--listen", "127.0.0.1:0")
	for token, want := range map[string]int{"": 401, s.Token + "x": 401, s.Token: 200} {
		if status, _, text := s.ask(t, "GET", "/v1/labs", token, ""); status != want {
			t.Errorf("token %q: %d %s", token, status, text)
		}
	}
	status, header, page := s.ask(t, "GET", "/", "", "")
	if status != 200 || !strings.Contains(page, "<html") || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the page: %d %v\n%.300s", status, header, page)
	}
	out, err := command("--listen", strings.TrimPrefix(s.Listen, "http://")).CombinedOutput()
	if code := exitCode(err); code != 4 || !strings.Contains(string(out), "the port is taken: is another daemon running, or choose another port") {
		t.Errorf("a second one on its port: exit code %d\n%s", code, out)
	}
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as Run returns it
		return exit.ExitCode()
	}
	return 0
}

func TestATokenFileIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for range 2 {
		s := start(t, "--listen", "[::1]:0", "--token-file", path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || s.Token != "" {
			t.Errorf("%v %v; printed %q", info.Mode(), err, s.Token)
		}
		if status, _, said := s.ask(t, "GET", "/v1", strings.TrimSpace(string(text)), ""); status != 200 {
			t.Errorf("%d %s", status, said)
		}
		s.end(t, syscall.SIGTERM)
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := command("--listen", "[::1]:0", "--token-file", path).CombinedOutput()
	if code := exitCode(err); code != 2 || !strings.Contains(string(out), "expected one word of at least 16 characters") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestWithoutRootNothingIsServed(t *testing.T) {
	nstest.Root(t)
	cmd := command("--listen", "127.0.0.1:0")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if code := exitCode(err); code != 6 || !strings.Contains(string(out), "needs root: try again with sudo") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestASocketIsAloneAndGoesAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s := start(t, "--listen", "unix:"+path)
	if status, _, text := s.ask(t, "GET", "/v1/labs", "", ""); status != 200 || text != "[]\n" {
		t.Errorf("%d %s", status, text)
	}
	out, err := command("--listen", "unix:"+path).CombinedOutput()
	if code := exitCode(err); code != 4 || !strings.Contains(string(out), "another daemon answers there") {
		t.Errorf("a second one: exit code %d\n%s", code, out)
	}
	s.end(t, syscall.SIGINT)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("its socket: %v", err)
	}
}

func TestLabsOutliveTheServerUnlessTheyAreToGoWithIt(t *testing.T) {
	name := unique("outlive")
	s := start(t, "--listen", "unix:"+filepath.Join(t.TempDir(), "s"))
	raised(t, s, name)
	s.end(t, syscall.SIGINT)
	if len(left(name)) == 0 {
		t.Error("the lab went with its server")
	}
	s = start(t, "--listen", "unix:"+filepath.Join(t.TempDir(), "s"), "--until-eof", "--down")
	if status, _, text := s.ask(t, "DELETE", "/v1/labs/"+name, "", ""); status != 200 || len(left(name)) > 0 {
		t.Errorf("down: %d %s", status, text)
	}
	raised(t, s, name)
	s.stdin.Close()
	s.end(t, 0)
	if all := left(name); len(all) > 0 {
		t.Errorf("it left %v", all)
	}
}

func TestWhatIsInProgressIsUndoneWhenTheServerEnds(t *testing.T) {
	name := unique("progress")
	s := start(t, "--listen", "127.0.0.1:0")
	r := &rig{T: t, url: s.Listen}
	body, err := json.Marshal(labapi.FileRequest{Source: network, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	q := r.request(t.Context(), "POST", "/v1/labs", string(body))
	q.Header.Set("Authorization", "Bearer "+s.Token)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := answer.Body.Read(make([]byte, 1)); err != nil { // the first line: it has begun
		t.Fatal(err)
	}
	s.end(t, syscall.SIGINT)
	if all := left(name); len(all) > 0 {
		t.Errorf("it left %v", all)
	}
}
