package nsenter_test

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// where is the number of the namespace of the calling thread.
func where(t *testing.T) uint64 {
	t.Helper()
	f, err := nsenter.Here()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return number(t, f)
}

func number(t *testing.T, f *os.File) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// made is a namespace for the test.
func made(t *testing.T) *os.File {
	t.Helper()
	nstest.Root(t)
	ns, err := nsenter.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

func TestFunctionsRunInsideAndTheCallerStaysOutside(t *testing.T) {
	ns := made(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home := where(t)
	sentinel := errors.New("of the function")
	for name, in := range map[string]func(func() error) error{
		"Do":    func(f func() error) error { return nsenter.Do(ns, f) },
		"DoAt":  func(f func() error) error { return nsenter.DoAt("/proc/self/fd/"+strconv.Itoa(int(ns.Fd())), f) },
		"Visit": func(f func() error) error { return nsenter.Visit(ns, f) },
	} {
		var was uint64
		if err := in(func() error { was = where(t); return sentinel }); err != sentinel {
			t.Errorf("%s: %v, want the function's error", name, err)
		}
		if was != number(t, ns) || where(t) != home {
			t.Errorf("%s: it ran in %d, then the caller was in %d; want %d and %d", name, was, where(t), number(t, ns), home)
		}
	}
}

// A goroutine that is locked to the first thread and ends leaves it as it is, for ever: /proc/self would be of another namespace.
func TestTheFirstThreadIsNeverTaken(t *testing.T) {
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			nsenter.Thread(func() error { // there is none
				if unix.Gettid() == unix.Getpid() {
					t.Error("the process's first thread was taken")
				}
				return nil
			})
		})
	}
	all.Wait()
}

// t.Fatal ends a goroutine without a return.
func TestAVisitComesBackFromAFunctionThatDoesNotReturn(t *testing.T) {
	ns := made(t)
	ended := make(chan uint64)
	go func() {
		runtime.LockOSThread()
		defer func() { ended <- where(t) }()
		nsenter.Visit(ns, func() error { runtime.Goexit(); return nil })
	}()
	if at := <-ended; at == number(t, ns) {
		t.Error("the thread stayed in the namespace")
	}
}

func TestWhatIsNoNamespaceIsRefused(t *testing.T) {
	f, err := os.Open("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	never := func() error { t.Error("it ran all the same"); return nil }
	for name, err := range map[string]error{
		"another kind": nsenter.Do(f, never), "on a visit": nsenter.Visit(f, never),
		"a file": nsenter.DoAt("/etc/passwd", never), "nothing": nsenter.DoAt("/nonexistent", never),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := nsenter.DoAt("/nonexistent", never); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

func TestANamespaceIsSetUpBeforeAnybodyHasIt(t *testing.T) {
	nstest.Root(t)
	var inside uint64
	ns, err := nsenter.New(func() error { inside = where(t); return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if inside != number(t, ns) {
		t.Errorf("set up in %d, made %d", inside, number(t, ns))
	}
	failed := errors.New("of setting up")
	if ns, err := nsenter.New(func() error { return failed }); err != failed || ns != nil {
		t.Errorf("%v, %v; want no namespace and the error of setting up", ns, err)
	}
}
