package private_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/private"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// holdEnv makes the test binary a process that holds a place until it is killed.
const holdEnv = "SCAFFOLD_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holdEnv) == "" {
		nstest.Main(m)
		return
	}
	if _, err := private.Hold("daemon"); err != nil {
		panic(err)
	}
	if _, err := private.Listen("daemon.sock"); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("held\n")
	select {}
}

func none(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		all, _ := filepath.Glob(path + "/*/*")
		t.Errorf("%s is left: %v %v", path, err, all)
	}
}

func TestAPlaceIsOnesOwnInEachNamespace(t *testing.T) {
	nstest.Root(t)
	a, b := nstest.New(t, "a"), nstest.New(t, "b")
	var first, other io.Closer
	var again, elsewhere error
	a.Do(func() {
		first, _ = private.Hold("daemon")
		_, again = private.Hold("daemon")
	})
	b.Do(func() { other, elsewhere = private.Hold("daemon") })
	if first == nil || !errors.Is(again, private.ErrHeld) || elsewhere != nil {
		t.Fatalf("first %v, again %v, elsewhere %v", first, again, elsewhere)
	}
	held := func(ns *nstest.NS, name string) (is bool) {
		ns.Do(func() {
			var err error
			if is, err = private.Held(name); err != nil {
				t.Error(err)
			}
		})
		return is
	}
	for range 2 { // who asks must not take it from who holds it
		if !held(a, "daemon") || held(a, "another") {
			t.Error("who holds a place is not seen, or is taken it from")
		}
	}
	first.Close()
	if held(a, "daemon") || !held(b, "daemon") {
		t.Error("a place that was given back is held, or another namespace's is not")
	}
	a.Do(func() { first, again = private.Hold("daemon") })
	if again != nil {
		t.Fatalf("after it was given back: %v", again)
	}
	first.Close()
	other.Close()
	none(t, private.Root+"/net")
}

// kill -9 leaves files; the next daemon, or Sweep, takes them for what they are.
func TestAPlaceEndsWithItsProcess(t *testing.T) {
	nstest.Root(t)
	for range 2 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), holdEnv+"=1")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		if _, err := private.Hold("daemon"); !errors.Is(err, private.ErrHeld) {
			t.Errorf("while another process has it: %v", err)
		}
		if err := private.Sweep(); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	h, err := private.Hold("daemon")
	if err != nil {
		t.Fatal(err)
	}
	l, err := private.Listen("daemon.sock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := private.Listen("daemon.sock"); !errors.Is(err, private.ErrHeld) {
		t.Errorf("a socket that somebody listens at was taken away: %v", err)
	}
	l.Close()
	h.Close()
	if err := private.Sweep(); err != nil {
		t.Fatal(err)
	}
	none(t, private.Root+"/net")
}

// A local user: nothing that he makes first is taken for the daemon's own.
func TestALocalUserTakesNoPlace(t *testing.T) {
	nstest.Root(t)
	h, err := private.Hold("daemon")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := private.Listen("daemon.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir, err := private.Place()
	if err != nil {
		t.Fatal(err)
	}
	var trials map[string]error
	nstest.Nobody(t, func() {
		trials = map[string]error{}
		_, trials["connect"] = net.Dial("unix", l.Addr().String())
		_, trials["bind beside it"] = net.Listen("unix", dir+"/other.sock")
		trials["remove"] = os.Remove(l.Addr().String())
		trials["rename the directory"] = os.Rename(dir, dir+"x")
		trials["link"] = os.Symlink("/etc/passwd", dir+"/daemon.lock")
		_, trials["list"] = os.ReadDir(dir)
		trials["link in the root"] = os.Symlink("/tmp", private.Root+"/mine")
		_, err := os.OpenFile(dir+"/daemon.lock", os.O_RDONLY, 0)
		trials["open the lock"] = err
		_, err = os.OpenFile(private.Root+"/net/lock", os.O_RDONLY, 0)
		trials["open the lock of all"] = err
		_, trials["hold"] = private.Hold("daemon2")
	})
	for name, err := range trials {
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: %v, want permission denied", name, err)
		}
	}
}

// A local user at the other end, of either side, is told nothing.
func TestAnotherUserAtTheOtherEndIsNoticed(t *testing.T) {
	nstest.Root(t)
	const name = "@scaffold-test-private"
	var theirs net.Listener
	nstest.Nobody(t, func() { theirs, _ = net.Listen("unix", name) })
	if theirs == nil {
		t.Fatal("nobody could not bind")
	}
	defer theirs.Close()
	if c, err := private.Dial(name); !errors.Is(err, private.ErrOtherUser) {
		t.Errorf("dialled %v, %v: want it refused", c, err)
	}
	theirs.Close()
	ours, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := private.Listener(ours).Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	var other net.Conn
	nstest.Nobody(t, func() { other, _ = net.Dial("unix", name) })
	if other == nil {
		t.Fatal("nobody could not connect")
	}
	if n, err := other.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a connection of another user was not closed: %d, %v", n, err)
	}
	friend, err := private.Dial(name)
	if err != nil {
		t.Fatal(err)
	}
	defer friend.Close()
	nstest.Receive(t, "the listener takes nobody", accepted).Close()
}

func TestDirectoriesOfOthersAreRefused(t *testing.T) {
	safety.Test(t, safety.Door)
	nstest.Root(t)
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(private.Dir(at("good")))
	if info, err := os.Stat(at("good")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	must(os.Mkdir(at("theirs"), 0o700))
	must(os.Chown(at("theirs"), nstest.NobodyID, -1))
	must(os.Mkdir(at("open"), 0o700))
	must(os.Chmod(at("open"), 0o777))
	must(os.Symlink(at("theirs"), at("to-theirs")))
	must(os.Symlink(at("good"), at("link-of-theirs")))
	must(unix.Lchown(at("link-of-theirs"), nstest.NobodyID, -1))
	must(os.WriteFile(at("file"), nil, 0o600))
	must(os.Symlink(at("good"), at("to-good")))
	for _, bad := range []string{"theirs", "open", "to-theirs", "link-of-theirs", "file"} {
		if err := private.Dir(at(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	must(private.Dir(at("to-good")))
}
