package checks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// here is the namespace of the test.
type here struct{}

func (here) Do(f func() error) error { return f() }
func (here) Join() error             { return nil }

// allow is a host's configuration.
func allow(t *testing.T, entries ...string) Allowed {
	t.Helper()
	a, err := ParseAllowed(entries)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// anyone is a directory that every user may write into.
func anyone(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "exec-check") // t.TempDir is for its user alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A controller that was broken into: whatever it says, no line runs that the host does not list.
func TestAControllerSuppliesNoCommand(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "ran")
	list := allow(t, "db=true", "true", "test -e /x y")
	for _, word := range []string{"touch " + mark, "true; touch " + mark, "db; touch " + mark, "db\ntouch " + mark, "$(touch " + mark + ")", "DB", "", "test -e /x  y"} {
		err := Check{In: here{}, Spec: "exec:" + word, Allowed: list}.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "add it to exec-check") {
			t.Errorf("exec:%q: %v, want it refused with what to do", word, err)
		}
	}
	if err := (Check{In: here{}, Spec: "exec:true"}).run(t.Context()); err == nil {
		t.Error("a host that lists nothing ran a command")
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command of the controller's ran")
	}
}

// holder is a process of a user that holds a listener; root holds it, too.
func holder(t *testing.T, multipath bool, uid, gid uint32, groups ...uint32) (cookie uint64, at netip.AddrPort) {
	t.Helper()
	nstest.Root(t)
	var lc net.ListenConfig
	lc.SetMultipathTCP(multipath)
	l, err := lc.Listen(t.Context(), "tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	cookie, err = unix.GetsockoptUint64(int(f.Fd()), unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		t.Fatal(err)
	}
	// It ends with its input, and so with us. A signal at its parent's death (PR_SET_PDEATHSIG) would come when the thread
	// ends that started it, and entering a namespace ends threads.
	cmd := exec.Command("/bin/cat")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid, Groups: groups}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); f.Close(); l.Close() })
	return cookie, l.Addr().(*net.TCPAddr).AddrPort()
}

func (s *Servant) of(cookie uint64) *Servant {
	s.Cookies = func() map[uint64]bool { return map[uint64]bool{cookie: true} }
	return s
}

// What a check has is the serving program's: user, groups, and nothing of the daemon.
func TestAnAllowedCheckHasTheServingProgramsRightsAlone(t *testing.T) {
	cookie, at := holder(t, false, 1234, 1235, 1236, 1237)
	dir := anyone(t)
	secret, err := os.CreateTemp(dir, "descriptor")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	t.Setenv("SCAFFOLD_TEST_SECRET", "of the daemon")
	out := filepath.Join(dir, "out")
	line := fmt.Sprintf(`exec >%s; id -u; id -g; id -G; env; ls -l /proc/self/fd; grep -E "^Cap(Prm|Eff|Amb)|NoNewPrivs" /proc/self/status; pwd`, out)
	c := Check{In: here{}, Spec: "exec:look", Allowed: allow(t, "look="+line), Servant: (&Servant{In: here{}, Proto: sid.TCP, At: at}).of(cookie)}
	for range 2 { // the second one by what the first one remembered
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		got := string(text)
		for _, want := range []string{"1234\n1235\n1235 1236 1237\n", "NoNewPrivs:\t1", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000", "SCAFFOLD_PORT="} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in what the check saw:\n%s", want, got)
			}
		}
		for _, bad := range []string{"SCAFFOLD_TEST_SECRET", "socket:", "bpf", filepath.Base(secret.Name()), "pipe:"} {
			if strings.Contains(got, bad) {
				t.Errorf("the check saw %q:\n%s", bad, got)
			}
		}
		os.Remove(out)
	}
	if c.Servant.link == "" {
		t.Error("the program was not remembered")
	}
}

// Who serves as root, or is not found, has its checks run by nobody.
func TestNoCheckRunsAsRoot(t *testing.T) {
	cookie, at := holder(t, false, 0, 0)
	for name, s := range map[string]*Servant{
		"a program of root's": (&Servant{In: here{}, Proto: sid.TCP, At: at}).of(cookie),
		"not found":           (&Servant{In: here{}, Proto: sid.TCP, At: at}).of(cookie + 1),
		"not looked for":      nil,
	} {
		c := Check{In: here{}, Spec: "exec:who", Allowed: allow(t, `who=test "$(id -u) $(id -g) $(id -G)" = "65534 65534 65534"`), Servant: s}
		if err := c.run(t.Context()); err != nil {
			t.Errorf("%s: %v, want it to run as nobody", name, err)
		}
	}
}

// What sock_diag lists of a listener of Multipath TCP is not the socket that the program holds.
func TestAProgramThatListensWithMultipathTCPIsFound(t *testing.T) {
	_, at := holder(t, true, 1234, 1234)
	if c := (&Servant{In: here{}, Proto: sid.TCP, At: at}).of(0).user(); c.Uid != 1234 {
		t.Errorf("user %d", c.Uid)
	}
	elsewhere := netip.AddrPortFrom(netip.MustParseAddr("::2"), at.Port())
	if c := (&Servant{In: here{}, Proto: sid.TCP, At: elsewhere}).of(0).user(); c.Uid != nobody.Uid {
		t.Errorf("user %d of another address", c.Uid)
	}
}

// A process with the number of one that has ended is not taken for it.
func TestAProgramThatEndedIsLookedForAgain(t *testing.T) {
	cookie, at := holder(t, false, 1234, 1234)
	s := (&Servant{In: here{}, Proto: sid.TCP, At: at}).of(cookie)
	if c := s.user(); c.Uid != 1234 {
		t.Fatalf("user %d", c.Uid)
	}
	s.socket = "socket:[1]" // what it holds under this number is another one now
	if c, ok := s.holder(s.link); ok {
		t.Errorf("user %d by a descriptor of something else", c.Uid)
	}
	if c := s.user(); c.Uid != 1234 || s.socket == "socket:[1]" {
		t.Errorf("user %d by %s, want it found anew", c.Uid, s.socket)
	}
}

// What a check starts ends with it, also where it says that all is well; output is not waited for.
func TestAllThatACheckStartsEndsWithIt(t *testing.T) {
	nstest.Root(t)
	fifo := filepath.Join(anyone(t), "alive")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	os.Chmod(fifo, 0o666) // the next line tells
	hold, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	c := Check{In: here{}, Spec: "exec:leaves", Allowed: allow(t, "leaves=sleep 1000 >"+fifo+" & yes | head -c 10000000")}
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := hold.Read(make([]byte, 1)); err != io.EOF { // whoever writes is gone
		t.Errorf("what the check left behind lives on: %v", err)
	}
}

func TestWhatAConfigurationMayList(t *testing.T) {
	a := allow(t, "db=pg_isready -q", " curl -f http://[::1]/ ", "X=1 true")
	for word, want := range map[string]string{"db": "pg_isready -q", "curl -f http://[::1]/": "curl -f http://[::1]/", "X=1 true": "X=1 true"} {
		if got, err := a.Command(word); err != nil || got != want {
			t.Errorf("%s: %q, %v", word, got, err)
		}
	}
	for _, bad := range [][]string{{""}, {"db="}, {"db=true", "db=false"}, {"db=a\x00b"}} {
		if _, err := ParseAllowed(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestStatusOfProcessesIsRead(t *testing.T) {
	c, err := parseStatus([]byte("Name:\tx\nUid:\t0\t33\t0\t0\nGid:\t0\t34\t0\t0\nGroups:\t5 6 \n"))
	if err != nil || c.Uid != 33 || c.Gid != 34 || len(c.Groups) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"", "Uid:\t1\nGid:\t1\t1\nGroups:\t\n", "Uid:\tx\t1\n", "Uid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\n"} {
		if _, err := parseStatus([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	self, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := parseStatus(self); err != nil || c.Uid != uint32(os.Geteuid()) {
		t.Errorf("%s: %+v, %v", strconv.Itoa(os.Getpid()), c, err)
	}
}

// A check that hangs ends, with all that it started, while others go on.
func TestAReadyCheckThatHangsIsBoundedAndHoldsUpNobody(t *testing.T) {
	nstest.Root(t)
	list := allow(t, "hangs=sleep 1000 & sleep 1000", "true")
	hung := make(chan error, 1)
	go func() { hung <- Check{In: here{}, Spec: "exec:hangs", Allowed: list}.run(context.Background()) }()
	for range 10 {
		if err := (Check{In: here{}, Spec: "exec:true", Allowed: list}).run(t.Context()); err != nil {
			t.Fatalf("another check, meanwhile: %v", err)
		}
	}
	select {
	case err := <-hung:
		if err == nil || !strings.Contains(err.Error(), "no end in 2s") {
			t.Errorf("a check that hangs: %v", err)
		}
	case <-time.After(20 * checkLimit):
		t.Error("a check that hangs does not end")
	}
}
