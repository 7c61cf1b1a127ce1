package controld

import (
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// What a host says at its join is stored: a record that the store cannot take would stop all saving.
func TestAJoinOutOfBoundsIsRefusedAndNothingIsLost(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c := start(t, config.Config{})
	c.router("r1")
	long := strings.Repeat("x", 3<<20)
	for name, bad := range map[string]func(*apiv1.Join){
		"no attachment":      func(j *apiv1.Join) { j.Attachment = nil },
		"a boot id of 3 MB":  func(j *apiv1.Join) { j.BootId = long },
		"a key of 3 MB":      func(j *apiv1.Join) { j.Key = []byte(long) },
		"a port of 3 MB":     func(j *apiv1.Join) { j.Attachment.Port = long },
		"an IPv4 address":    func(j *apiv1.Join) { j.Attachment.LinkLocal = "10.0.0.1" },
		"no address":         func(j *apiv1.Join) { j.Attachment.LinkLocal = "" },
		"a MAC of 3 bytes":   func(j *apiv1.Join) { j.Attachment.Mac = []byte{1, 2, 3} },
		"a name with spaces": func(j *apiv1.Join) { j.Name = "a host" },
	} {
		j := join("s9", "r1")
		bad(j)
		h := c.joinHost(j)
		c.await(name+" is refused", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.refused != nil })
	}
	c.host("s1", "r1")
	c.await("all is saved", func() bool { return c.metric("state_pending") == 0 })
	if c.metric("store_failures_total") != 0 {
		t.Error("the store failed")
	}
	c.kill()
	c.run(config.Config{})
	if hosts := c.hosts(); len(hosts) != 1 || hosts["s1"] == nil {
		t.Errorf("after a restart the hosts are %v, want s1", hosts)
	}
}

func TestLinksOutOfBoundsAreNotBelieved(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r := c.router("r1")
	r.links(&apiv1.Neighbour{Port: "e0", Peer: strings.Repeat("x", 3<<20), Via: "fe80::1", Up: true})
	c.event("router.error")
}
