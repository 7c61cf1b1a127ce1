package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/nstest"
)

// A check that hangs costs its instance its new flows, and nobody else anything: the line says so.
func TestAReadyCheckThatHangsCostsItsInstanceAlone(t *testing.T) {
	n := theNetwork(t)
	hangs := fmt.Sprintf(`exec:[ "$(readlink /proc/self/ns/net)" != "net:[%d]" ] || sleep 1000`, n.at("s2").Inode(t))
	to := port(n.create("hangs", &apiv1.Policy{Ready: hangs}), 80)
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
