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

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
	"scaffold.dev/scaffold/internal/lab/v1/labv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
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
		s.cmd.Wait() // it has said why
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
		s.cmd.Process.Signal(sig) // it may have ended
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, &s.said)
	}
}

// shows is how a token is shown with each request.
type shows struct {
	token string
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s shows) RoundTrip(q *http.Request) (*http.Response, error) {
	if s.token != "" {
		q.Header.Set("Authorization", "Bearer "+s.token)
	}
	return s.RoundTripper.RoundTrip(q)
}

// reach is a client of whatever it listens on, and the base of its URLs.
func (s *served) reach(token string) (*http.Client, string) {
	transport, base := &http.Transport{DisableKeepAlives: true}, s.Listen
	if socket, ok := strings.CutPrefix(s.Listen, "unix:"); ok {
		base = "http://lab"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	return &http.Client{Transport: shows{token, transport}}, base
}

func (s *served) lab(token string) labv1connect.LabClient {
	client, base := s.reach(token)
	return labv1connect.NewLabClient(client, base)
}

func TestOverTCPItTakesTheTokenThatItPrinted(t *testing.T) {
	safety.Test(t, safety.Door)
	s := start(t, "--listen", "127.0.0.1:0")
	for token, admitted := range map[string]bool{"": false, s.Token + "x": false, s.Token: true} {
		if _, err := s.lab(token).ListNames(t.Context(), &labv1.ListNamesRequest{}); (err == nil) != admitted || !admitted && connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("token %q: %v", token, err)
		}
	}
	client, base := s.reach("")
	answer, err := client.Get(base)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 || !strings.Contains(string(page), "<html") || !strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the page: %v %v\n%.300s", err, answer, page)
	}
	out, err := command("--listen", strings.TrimPrefix(s.Listen, "http://")).CombinedOutput()
	if code := exitCode(err); code != 4 || !strings.Contains(string(out), "the port is taken: is another daemon running, or choose another port") {
		t.Errorf("a second one on its port: exit code %d\n%s", code, out)
	}
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok { // as Run returns it
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
		if _, err := s.lab(strings.TrimSpace(string(text))).GetVersion(t.Context(), &labv1.GetVersionRequest{}); err != nil {
			t.Error(err)
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
	if all, err := s.lab("").ListLabs(t.Context(), &labv1.ListLabsRequest{}); err != nil || len(all.Labs) > 0 {
		t.Errorf("%v, %v", all, err)
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
	name := nstest.LabNamed("outlive")
	s := start(t, "--listen", "unix:"+filepath.Join(t.TempDir(), "s"))
	raise(t, s.lab(""), network, name)
	s.end(t, syscall.SIGINT)
	if len(left(name)) == 0 {
		t.Error("the lab went with its server")
	}
	s = start(t, "--listen", "unix:"+filepath.Join(t.TempDir(), "s"), "--until-eof", "--down")
	if gone, err := s.lab("").Down(t.Context(), &labv1.LabName{Lab: name}); err != nil || len(left(name)) > 0 {
		t.Errorf("down: %v, %v", gone, err)
	}
	raise(t, s.lab(""), network, name)
	s.stdin.Close()
	s.end(t, 0)
	if all := left(name); len(all) > 0 {
		t.Errorf("it left %v", all)
	}
}

func TestWhatIsInProgressIsUndoneWhenTheServerEnds(t *testing.T) {
	name := nstest.LabNamed("progress")
	s := start(t, "--listen", "127.0.0.1:0")
	events, err := s.lab(s.Token).Up(t.Context(), &labv1.LabFile{Source: network, Name: name})
	if err != nil || !events.Receive() { // the first event: it has begun
		t.Fatal(err)
	}
	defer events.Close()
	s.end(t, syscall.SIGINT)
	if all := left(name); len(all) > 0 {
		t.Errorf("it left %v", all)
	}
}
