package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A check that hangs costs its instance its new flows, and nobody else anything: the line says so. The servers are of
// root's, so that the check runs as nobody, in the network of its host.
func TestAReadyCheckThatHangsCostsItsInstanceAlone(t *testing.T) {
	n := theNetwork(t)
	if err := os.WriteFile("/run/hangs", fmt.Appendf(nil, "net:[%d]", n.at("s2").Inode(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	to := port(n.create("hangs"), 80)
	n.serveTCP("s1", to)
	n.serveTCP("s2", to)
	n.serving("hangs", "tcp", 80, 1)
	nstest.Wait(t, n.look(), func() error {
		s, err := n.service("hangs")
		if err != nil {
			return err
		}
		for _, i := range s.Instances {
			if i.Host == "s2" && i.State == "not ready" && strings.HasSuffix(i.Reason, ": no end in 2s") {
				return nil
			}
		}
		return errors.Join(errors.New("the instance whose check hangs does not say so"), fmt.Errorf("%v", s.Instances))
	})
	for range 20 {
		if host := n.who("tcp6", to); host != "s1" {
			t.Fatalf("%s answers, whose check hangs", host)
		}
	}
}

// A controller that was broken into: a command of its own runs nowhere, and it is told why.
func TestAControllersOwnCommandRunsNowhere(t *testing.T) {
	n := theNetwork(t)
	to := port(n.create("breakin", &apiv1.Policy{Ready: "exec:touch /run/broken-in"}), 80)
	n.serveTCP("s1", to)
	nstest.Wait(t, n.look(), func() error {
		s, err := n.service("breakin")
		if err != nil {
			return err
		}
		if len(s.Instances) == 1 && s.Instances[0].State == "not ready" && strings.Contains(s.Instances[0].Reason, "add it to exec-check in the host's hostd.yaml") {
			return nil
		}
		return fmt.Errorf("the instance does not say that its check is not allowed: %v", s.Instances)
	})
	if _, err := os.Stat("/run/broken-in"); err == nil {
		t.Error("the command ran")
	}
}
