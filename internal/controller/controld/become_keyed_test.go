package controld

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/tests/freeport"
)

// A trio is three controllers that keep the state among themselves, each of which can be started anew.
type trio struct {
	t       *testing.T
	dir     string
	members []store.Peer
	ports   map[string]string
	stops   map[string]context.CancelFunc
	ended   map[string]chan error
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &trio{t: t, dir: dir, ports: map[string]string{}, stops: map[string]context.CancelFunc{}, ended: map[string]chan error{}}
	for _, name := range []string{"c1", "c2", "c3"} {
		c.members = append(c.members, store.Peer{Name: name, URL: "http://" + freeport.Address(t)})
		c.ports[name] = freeport.Address(t)
	}
	t.Cleanup(func() {
		for name := range c.stops {
			c.stop(name) // those that were to end with one have been looked at
		}
	})
	return c
}

// start runs one of them; said is its --trust.
func (c *trio) start(name, said string) {
	c.t.Helper()
	cfg := config.Config{Name: name, Network: "test", Trust: said, Data: filepath.Join(c.dir, name), Socket: c.socket(name), Listen: []string{c.ports[name]}}
	cfg.Cluster = &store.Cluster{Name: name, Members: c.members}
	for _, m := range c.members {
		if m.Name == name {
			cfg.Cluster.Peer = m.URL
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	c.stops[name], c.ended[name] = stop, ended
	go func() {
		ended <- Run(ctx, cfg, slog.New(slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	}()
}

func (c *trio) stop(name string) error {
	c.stops[name]()
	delete(c.stops, name)
	return <-c.ended[name]
}

func (c *trio) socket(name string) string { return filepath.Join(c.dir, name+".s") }

// at is the API on the socket of one.
func (c *trio) at(name string) caller { return (&controller{t: c.t, socket: c.socket(name)}).local() }

// leads waits until so many of them run at least, and one leads, and says which.
func (c *trio) leads(run int) (leader string) {
	c.t.Helper()
	await(c.t, fmt.Sprintf("%d controllers run and one of them leads", run), func() bool {
		for name := range c.stops {
			list, err := c.at(name).admin.ListControllers(c.t.Context(), connect.NewRequest(&apiv1.ListControllersRequest{}))
			if err != nil {
				continue
			}
			running := 0
			for _, x := range list.Msg.Controllers {
				switch x.State {
				case "leads":
					leader = x.Name
					fallthrough
				case "stands by":
					running++
				}
			}
			return running >= run && c.stops[leader] != nil
		}
		return false
	})
	return leader
}

// TestThreeOpenControllersGetKeysOneAfterTheOther, those that stand by first: two of three run all the time, and what is
// known stays known. Whoever asks in the clear gets the key from none of them.
func TestThreeOpenControllersGetKeysOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	for _, m := range c.members {
		c.start(m.Name, config.TrustOpen)
	}
	first := c.leads(3)
	if _, err := c.at(first).admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: "web"})); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(c.others(first), first) {
		if err := c.stop(name); err != nil {
			t.Fatalf("%s, open, ended with %v", name, err)
		}
		c.start(name, config.TrustKeys)
		c.leads(3)
	}
	for _, m := range c.members {
		await(t, m.Name+" has the network's key", func() bool {
			status, err := c.at(m.Name).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
			return err == nil && status.Msg.Trust == config.TrustKeys && status.Msg.Services == 1
		})
		if stealsBackup(c.ports[m.Name]) {
			t.Errorf("%s hands out the state in the clear", m.Name)
		}
	}
	if err := c.stop(c.members[0].Name); err != nil {
		t.Error(err)
	}
	c.start(c.members[0].Name, "") // nothing is said any more: it stays so
	c.leads(3)
}

func (c *trio) others(name string) (list []string) {
	for _, m := range c.members {
		if m.Name != name {
			list = append(list, m.Name)
		}
	}
	return list
}
