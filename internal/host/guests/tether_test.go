package guests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A moored is what a test of tethers has: a directory of names, and what was told.
type moored struct {
	*tethers
	t    *testing.T
	ns   *nstest.NS
	dir  string
	told chan *tether
}

func newMoored(t *testing.T) *moored {
	nstest.Root(t)
	m := &moored{t: t, ns: nstest.New(t, "tethers"), dir: t.TempDir(), told: make(chan *tether, 16)}
	var err error
	if m.tethers, err = newTethers(t.Context(), func(x *tether) { m.told <- x }); err != nil {
		t.Fatal(err)
	}
	return m
}

// process has a network namespace of its own.
func (m *moored) process() (p *nstest.Proc, path string) {
	m.t.Helper()
	p = m.ns.Start(m.t, "unshare", "-n", "sh", "-c", "echo ready; exec sleep 1000")
	p.WaitFor(m.t, "ready")
	return p, fmt.Sprintf("/proc/%d/ns/net", p.PID())
}

// name binds the namespace at path to a file, as `ip netns` does.
func (m *moored) name(path, name string) string {
	m.t.Helper()
	file := filepath.Join(m.dir, name)
	if f, err := os.OpenFile(file, os.O_CREATE|os.O_RDONLY, 0o600); err != nil {
		m.t.Fatal(err)
	} else {
		f.Close()
	}
	if err := syscall.Mount(path, file, "", syscall.MS_BIND, ""); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { syscall.Unmount(file, syscall.MNT_DETACH) }) // it may be gone
	return file
}

func (m *moored) hold(path string) *tether {
	m.t.Helper()
	inode, err := inodeOf(path)
	if err != nil {
		m.t.Fatal(err)
	}
	x, err := m.tethers.hold(path, inode)
	if err != nil {
		m.t.Fatal(err)
	}
	return x
}

// tells wants that this one is told next. What is told comes in the order of what happens, so that nothing else was
// told before.
func (m *moored) tells(when string, want *tether) {
	m.t.Helper()
	if got := nstest.Receive(m.t, when, m.told); got != want {
		m.t.Errorf("%s: the end of %s is told, want that of %s", when, got.path, want.path)
	}
}

func (m *moored) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// The last process of a namespace ends and a name of it is left: who was known by the process has ended, who is known
// by the name goes on until that is taken away, be it that nothing but the mount goes.
func TestAGuestHangsOnWhatItIsKnownBy(t *testing.T) {
	m := newMoored(t)
	p, path := m.process()
	file := m.name(path, "web")
	byProcess, byName := m.hold(path), m.hold(file)
	p.Kill()
	m.tells("the process ended", byProcess)
	m.must(os.WriteFile(filepath.Join(m.dir, "other"), nil, 0o600))
	m.must(syscall.Unmount(file, syscall.MNT_DETACH))
	m.tells("the name was unmounted", byName)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file itself: %v", err)
	}
}

// The name goes and the process lives on.
func TestAGuestOutlivesANameThatItIsNotKnownBy(t *testing.T) {
	m := newMoored(t)
	p, path := m.process()
	file := m.name(path, "web")
	byProcess, byName := m.hold(path), m.hold(file)
	m.must(syscall.Unmount(file, syscall.MNT_DETACH))
	m.must(os.Remove(file))
	m.tells("the name was removed", byName)
	p.Kill()
	m.tells("the process ended", byProcess)
}

// A name that is a link to a process's namespace, as people make them for runtimes that give none, hangs on both.
func TestAGuestHangsOnALinkAndOnItsProcess(t *testing.T) {
	m := newMoored(t)
	link := func(name, to string) string {
		path := filepath.Join(m.dir, name)
		m.must(os.Symlink(to, path))
		return path
	}
	p, path := m.process()
	one, two := link("one", path), link("two", path)
	away := link("away", m.dir)
	three := m.hold(filepath.Join(away, "two"))
	byOne, byTwo := m.hold(one), m.hold(link("again", "two"))
	m.must(os.Remove(one))
	m.tells("the link was removed", byOne)
	m.release(three)
	p.Kill()
	m.tells("the process ended", byTwo)
	if _, err := os.Lstat(two); err != nil {
		t.Error(err)
	}
}

func TestAnotherNamespaceUnderTheNameEndsTheGuest(t *testing.T) {
	m := newMoored(t)
	_, first := m.process()
	_, second := m.process()
	byName := m.hold(m.name(first, "web"))
	m.name(second, "web")
	m.tells("another namespace was bound over it", byName)
}

// What nobody holds any more is not told, and costs nothing.
func TestATetherThatIsLetGoIsNotTold(t *testing.T) {
	m := newMoored(t)
	p, path := m.process()
	file := m.name(path, "web")
	for _, x := range []*tether{m.hold(path), m.hold(file), m.hold(file)} {
		m.release(x)
		m.release(x)
	}
	if len(m.held)+len(m.dirs) != 0 {
		t.Errorf("held: %v, directories: %v", m.held, m.dirs)
	}
	p.Kill()
	q, path := m.process()
	last := m.hold(path)
	q.Kill()
	m.tells("another process ended", last)
}

func TestWhatIsGoneOrCannotBeToldIsRefused(t *testing.T) {
	m := newMoored(t)
	p, path := m.process()
	inode, err := inodeOf(path)
	m.must(err)
	proc := filepath.Join(m.dir, "proc")
	m.must(os.Mkdir(proc, 0o700))
	m.must(syscall.Mount("proc", proc, "proc", 0, ""))
	t.Cleanup(func() { syscall.Unmount(proc, syscall.MNT_DETACH) })
	refuses := func(path, want string) {
		t.Helper()
		if x, err := m.tethers.hold(path, inode); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v, want %q", path, x, err, want)
		}
	}
	refuses(filepath.Join(proc, "1/ns/net"), "another /proc")
	refuses("/proc/self/ns/net", "another one is there now")
	p.Kill()
	refuses(path, "no network namespace")
	refuses(filepath.Join(m.dir, "none"), "no such file")
	if len(m.held)+len(m.dirs) != 0 {
		t.Errorf("held: %v, directories: %v", m.held, m.dirs)
	}
}
