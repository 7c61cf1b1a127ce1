package e2e

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// connects begins n TCP connections at the same moment and waits for what becomes of each: 0, or the
// errno of connect().
func (n *network) connects(host string, to netip.AddrPort, count int) []unix.Errno {
	n.t.Helper()
	fds := make([]unix.PollFd, count)
	n.at(host).Do(func() {
		for i := range fds {
			fds[i] = unix.PollFd{Fd: int32(begin(n.t, to)), Events: unix.POLLOUT}
		}
	})
	results := make([]unix.Errno, count)
	for left := count; left > 0; {
		ready, err := unix.Poll(fds, int(nstest.Deadline.Milliseconds()))
		if ready <= 0 && err != unix.EINTR {
			n.t.Fatalf("%d of %d connects from %s to %v have no answer in %v (%v)\nlook at: %s", left, count, host, to, nstest.Deadline, err, n.look())
		}
		for i := range fds {
			if fds[i].Revents == 0 {
				continue
			}
			results[i] = outcome(n.t, int(fds[i].Fd))
			fds[i] = unix.PollFd{Fd: -1}
			left--
		}
	}
	return results
}

func begin(t *testing.T, to netip.AddrPort) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Connect(fd, &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())})
	if err != nil && err != unix.EINPROGRESS {
		t.Fatalf("connect to %v: %v before anything was sent", to, err)
	}
	return fd
}

func outcome(t *testing.T, fd int) unix.Errno {
	t.Helper()
	defer unix.Close(fd)
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		t.Fatal(err)
	}
	return unix.Errno(code)
}

// count says how often each outcome came.
func count(results []unix.Errno) map[string]int {
	counts := map[string]int{}
	for _, e := range results {
		counts[outcomeName(e)]++
	}
	return counts
}

func outcomeName(e unix.Errno) string {
	if e == 0 {
		return "connected"
	}
	return unix.ErrnoName(e)
}

// only is an error unless all outcomes are the same, wanted one.
func only(results []unix.Errno, want unix.Errno) error {
	for _, e := range results {
		if e != want {
			return fmt.Errorf("of %d connects there are %v, want all %s", len(results), count(results), outcomeName(want))
		}
	}
	return nil
}
