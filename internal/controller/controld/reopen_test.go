package controld

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/tests/freeport"
)

// stealsBackup is what an attacker does who reaches the port: he asks in the clear for all that is stored, the network's
// private key with it.
func stealsBackup(at string) bool {
	answer, err := http.Post("http://"+at+"/scaffold.v1.Admin/BackupState", "application/connect+json", strings.NewReader("\x00\x00\x00\x00\x02{}"))
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && len(text) > 0 && text[0] == 0 // a piece of it; a refusal comes as the end of the stream, 2
}

// ends runs a controller that is to refuse, and returns why.
func ends(t *testing.T, cfg config.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return Run(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// TestANetworkWithAKeyIsNeverOpenedAgain: an attacker on the way waits for the controller to be started without
// --trust keys, by an operator who installs it again for instance.
func TestANetworkWithAKeyIsNeverOpenedAgain(t *testing.T) {
	safety.Test(t, safety.Door)
	at := freeport.Address(t)
	c := start(t, config.Config{Trust: config.TrustKeys, Listen: []string{at}})
	c.create("web")
	c.kill()
	err := ends(t, config.Config{Network: "test", Trust: config.TrustOpen, Data: c.data, Socket: c.socket, Listen: []string{at}})
	if err == nil || !strings.Contains(err.Error(), "has keys") || !strings.Contains(err.Error(), "--trust open") {
		t.Errorf("--trust open on a store with a key: ended with %v", err)
	}
	c.untold(config.Config{Listen: []string{at}}) // nothing is said of trust
	if stealsBackup(at) {
		t.Error("whoever reaches the port gets the network's private key, in the clear")
	}
	if status, err := c.admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{})); err != nil || status.Msg.Trust != config.TrustKeys {
		t.Errorf("status: %v, %v; want a network with keys", status.Msg.GetTrust(), err)
	}
}

// TestANewNetworkHasKeys unless somebody says otherwise, and what was said holds at the next start.
func TestANewNetworkHasKeys(t *testing.T) {
	safety.Test(t, safety.Door)
	for said, want := range map[string]string{"": config.TrustKeys, config.TrustKeys: config.TrustKeys, config.TrustOpen: config.TrustOpen} {
		c := place(t)
		c.untold(config.Config{Trust: said})
		if got := c.trust(); got != want {
			t.Errorf("a new network with --trust %q has trust %s, want %s", said, got, want)
		}
		c.kill()
		c.untold(config.Config{})
		if got := c.trust(); got != want {
			t.Errorf("the network of --trust %q, started again, has trust %s, want %s", said, got, want)
		}
	}
}

func (c *controller) trust() string {
	c.t.Helper()
	status, err := c.admin.GetStatus(c.t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	return status.Msg.Trust
}

// former writes what a controller of a version before this one stored of an open network.
func former(t *testing.T, data string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: data, Network: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), store.PutRouter(store.Router{Name: "r1", Block: 1}), store.PutHost(store.Host{Name: "s1", Key: make([]byte, 32), Identity: 7, Here: true, Place: store.Place{Locator: 0x0102, Router: "r1", Port: "p1"}})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAnOpenNetworkOfBeforeStaysOpen: an upgrade changes nothing for those who are in it; --trust keys makes it one with
// keys, with its hosts under their names, and from then on it stays that.
func TestAnOpenNetworkOfBeforeStaysOpen(t *testing.T) {
	c := place(t)
	former(t, c.data)
	for range 2 {
		c.untold(config.Config{})
		if got := c.trust(); got != config.TrustOpen {
			t.Fatalf("an open network of before has trust %s now", got)
		}
		c.kill()
	}
	c.untold(config.Config{Trust: config.TrustKeys})
	if got := c.trust(); got != config.TrustKeys {
		t.Errorf("after --trust keys it has trust %s", got)
	}
	if c.hosts()["s1"] == nil {
		t.Error("its host is not known any more")
	}
	c.kill()
	c.untold(config.Config{})
	if got := c.trust(); got != config.TrustKeys {
		t.Errorf("started again it has trust %s", got)
	}
}

// place is where a controller is to run that nobody has started yet.
func place(t *testing.T) *controller {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &controller{t: t, socket: filepath.Join(dir, "s"), data: filepath.Join(dir, "data")}
	t.Cleanup(func() { c.kill() })
	return c
}
