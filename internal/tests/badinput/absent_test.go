package badinput

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// joined is what hostd logs when it is in the network.
const joined = `msg="joined the network"`

// A while without a controller, long enough for many attempts.
const absence = 4 * time.Second

func TestWithoutAControllerDaemonsSaySoOnceAndWait(t *testing.T) {
	s := newSite(t, "h1")
	r, h := s.routerd(), s.hostd("h1")
	const trouble = "controller unreachable"
	r.WaitFor(t, trouble)
	h.WaitFor(t, trouble)
	quiet(t, r, h, trouble, 1)
	c := s.controld()
	h.WaitFor(t, joined)
	s.until("up", "router", "ls")
	c.Signal(syscall.SIGKILL)
	c.Wait()
	nstest.Wait(t, "the daemons' logs", func() error {
		if lines(r, trouble) < 2 || lines(h, trouble) < 2 {
			return fmt.Errorf("%s\n%s", r.Output(), h.Output())
		}
		return nil
	})
	quiet(t, r, h, trouble, 2)
	s.controld()
	s.until("up", "host", "ls")
}

// quiet fails if daemons that cannot do anything say it more than once, or keep a processor busy.
func quiet(t *testing.T, r, h *nstest.Proc, trouble string, want int) {
	t.Helper()
	before := ticks(t, r) + ticks(t, h)
	time.Sleep(absence) // nothing is to happen: there is no event to wait for
	if used := ticks(t, r) + ticks(t, h) - before; used > int(absence/time.Second)*100/4 {
		t.Errorf("%d/100 s of processor in %v of waiting", used, absence)
	}
	for _, p := range []*nstest.Proc{r, h} {
		if n := lines(p, trouble); n != want {
			t.Errorf("%q stands %d times, want %d:\n%s", trouble, n, want, p.Output())
		}
	}
}

func TestAnUplinkThatVanishesAndReturnsIsTakenUpAgain(t *testing.T) {
	s := newSite(t, "h1")
	s.controld()
	s.routerd()
	h := s.hostd("h1")
	h.WaitFor(t, joined)
	s.unplug("h1")
	h.WaitFor(t, "there is no such interface") // where the daemon looked in time it said before that its address went
	s.until("host.gone", "events", "-n", "99")
	if n := lines(h, "there is no such interface"); n != 1 {
		t.Errorf("said %d times:\n%s", n, h.Output())
	}
	s.plug("h1")
	nstest.Wait(t, "the host's log", func() error {
		if lines(h, joined) < 2 {
			return fmt.Errorf("%s", h.Output())
		}
		return nil
	})
	s.until("up", "host", "ls")
	// Five, of which one has to come back: the router may hear of its host a moment after the host did.
	s.hosts["h1"].Run(t, "ping", "-6", "-c", "5", "-i", "0.2", "-W", "5", locatorOf(t, s, "r1"))
}

// locatorOf is the router's own address.
func locatorOf(t *testing.T, s *site, router string) string {
	t.Helper()
	var addr string
	nstest.Wait(t, "ip -6 addr show lo, in the router", func() error {
		for _, word := range strings.Fields(s.router.Run(t, "ip", "-6", "-o", "addr", "show", "dev", "lo")) {
			if a, ok := strings.CutSuffix(word, "/128"); ok && strings.HasPrefix(a, "fd5d:") {
				addr = a
				return nil
			}
		}
		return fmt.Errorf("%s has no locator", router)
	})
	return addr
}

func TestASecondHostOfTheSameNameIsRefused(t *testing.T) {
	s := newSite(t, "h1", "h2")
	s.controld()
	s.routerd()
	first := s.hostd("h1")
	first.WaitFor(t, joined)
	second := s.hostd("h2", "--name", "h1")
	second.WaitFor(t, "refused")
	time.Sleep(absence)
	if n := lines(second, "refused"); n != 1 {
		t.Errorf("said %d times:\n%s", n, second.Output())
	}
	if !strings.Contains(second.Output(), "a host named h1 is alive already, on port to-h1 of router r1: give this one another name") {
		t.Errorf("the second says:\n%s", second.Output())
	}
	if lines(first, joined) != 1 || lines(first, "unreachable") != 0 {
		t.Errorf("the first host noticed:\n%s", first.Output())
	}
}

func TestASecondDaemonOnOneHostIsRefused(t *testing.T) {
	s := newSite(t, "h1")
	s.controld()
	r := s.routerd()
	first := s.hostd("h1")
	first.WaitFor(t, joined)
	r.WaitFor(t, "router")
	for _, second := range []*nstest.Proc{
		s.hostd("h1"),
		s.hostd("h1", "--name", "other", "--socket", s.path("o.sock"), "--state", s.path("other")),
		s.routerd("--socket", s.path("o.sock")),
	} {
		err := second.Wait()
		if said := second.Output(); !strings.Contains(said, "d: another one runs in this network namespace: stop that first") || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: %s", err, said)
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 4 {
			t.Errorf("%v, want exit code 4", err)
		}
	}
	if lines(first, "put back") > 0 {
		t.Errorf("the first noticed:\n%s", first.Output())
	}
}

// A router and its hosts that are told controllers of two networks stay with the first, also while that is away.
func TestOfControllersOfTwoNetworksTheFirstIsBelieved(t *testing.T) {
	const other = "http://[fd00:99::1]:23730"
	s := newSite(t, "h1")
	c := s.controld()
	r := s.routerd("--controller", other)
	h := s.hostd("h1")
	h.WaitFor(t, joined)
	s.until("up", "host", "ls")
	at := locatorOf(t, s, "r1")
	s.start(s.ctl, []string{self, "controld", "--trust", "open", "--network", "other", "--listen", strings.TrimPrefix(other, "http://"), "--socket", s.path("o.sock"), "--data", s.path("o")})
	c.Signal(syscall.SIGKILL)
	c.Wait()
	const trouble = "the controller is of another network than the one before: --controller names those of two (other)"
	r.WaitFor(t, trouble)
	s.hosts["h1"].Run(t, "ping", "-6", "-c", "1", "-W", "5", at)
	s.controld()
	nstest.Wait(t, "the host's log", func() error {
		if lines(h, joined) < 2 {
			return fmt.Errorf("%s", h.Output())
		}
		return nil
	})
	s.until("up", "host", "ls")
	if n := lines(r, trouble); n != 1 {
		t.Errorf("said %d times:\n%s", n, r.Output())
	}
	if now := locatorOf(t, s, "r1"); now != at {
		t.Errorf("the router was at %s, is at %s", at, now)
	}
}
