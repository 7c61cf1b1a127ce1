package controld

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// healthz is the code and the body.
func (c *controller) healthz() (code int, body string) {
	c.t.Helper()
	client, base, err := api.Dial("unix:" + c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := client.Get(base + "/healthz")
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(text)
}

// TestADiskThatWasFullIsForgottenByItself: nobody writes anything after the order that was refused.
func TestADiskThatWasFullIsForgottenByItself(t *testing.T) {
	dir := nstest.Disk(t, 64<<20)
	if dir == "" {
		return
	}
	c := &controller{t: t, socket: t.TempDir() + "/s", data: dir}
	c.run(config.Config{})
	defer c.kill()
	c.create("before")
	if code, body := c.healthz(); code != http.StatusOK {
		t.Fatalf("healthz before: %d %s", code, body)
	}
	if err := nstest.Fill(dir + "/ballast"); err != nil {
		t.Fatal(err)
	}
	_, err := c.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: "while"}))
	if connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), "disk full") || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("an order on a full disk: %v; want the disk, its path, and that nothing was changed", err)
	}
	code, body := c.healthz()
	if code != http.StatusServiceUnavailable || !strings.Contains(body, dir) {
		t.Errorf("healthz on a full disk: %d %s; want 503 and the path", code, body)
	}
	state := func() *apiv1.StoreState {
		s, err := c.admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return s.Msg.StoreState
	}
	if s := state(); !s.Full || s.At != dir || s.FreeBytes >= s.NeededBytes || s.SinceUnixMs == 0 || !strings.Contains(s.Trouble, dir) {
		t.Errorf("the status of the store is %v", s)
	}
	if err := os.Remove(dir + "/ballast"); err != nil {
		t.Fatal(err)
	}
	c.await("healthz is well again, without another order", func() bool { code, _ := c.healthz(); return code == http.StatusOK })
	c.event("store.back")
	if s := state(); s.Full || s.Trouble != "" || s.FreeBytes < s.NeededBytes || s.SinceUnixMs != 0 {
		t.Errorf("the status of the store with room again is %v", s)
	}
	c.create("after")
	if c.service("after").Name == "" || c.service("before").Name == "" {
		t.Error("a service is missing")
	}
}
