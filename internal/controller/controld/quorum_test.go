package controld

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/tests/freeport"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// asProcess holds the controller that a process of this test is to be: one that can be killed.
const asProcess = "SCAFFOLD_TEST_CONTROLLER"

type processConfig struct {
	Name, Data, Socket, Listen, Peer string
	Members                          []store.Peer
}

func TestMain(m *testing.M) {
	if text := os.Getenv(asProcess); text != "" {
		var p processConfig
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic(err)
		}
		cfg := config.Config{Name: p.Name, Network: "test", Trust: config.TrustKeys, Data: p.Data, Socket: p.Socket, Listen: []string{p.Listen},
			Cluster: &store.Cluster{Members: p.Members, Peer: p.Peer}}
		if err := Run(context.Background(), cfg, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// processes runs controllers with keys, each in a process of its own, until one leads and the others stand by.
func processes(t *testing.T, names ...string) (all map[string]*controller, kill func(string), leader string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	var members []store.Peer
	for _, name := range names {
		members = append(members, store.Peer{Name: name, URL: "http://" + freeport.Address(t)})
	}
	all = map[string]*controller{}
	running := map[string]*exec.Cmd{}
	kill = func(name string) {
		if cmd := running[name]; cmd != nil {
			cmd.Process.Kill() // Wait says how it ended
			cmd.Wait()
			delete(running, name)
		}
	}
	t.Cleanup(func() {
		for _, name := range names {
			kill(name)
		}
		os.RemoveAll(dir)
	})
	for _, m := range members {
		socket := filepath.Join(dir, m.Name+".s")
		text, _ := json.Marshal(processConfig{m.Name, filepath.Join(dir, m.Name), socket, "https://" + freeport.Address(t), m.URL, members}) // strings alone
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), asProcess+"="+string(text)), t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running[m.Name] = cmd
		client, base, err := api.Dial("unix:" + socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdleConnections)
		all[m.Name] = &controller{t: t, socket: socket, admin: apiv1connect.NewAdminClient(client, base)}
	}
	await(t, "one leads, and the others know their network's key", func() bool {
		list, err := all[names[0]].admin.ListControllers(t.Context(), connect.NewRequest(&apiv1.ListControllersRequest{}))
		if err != nil || len(list.Msg.Controllers) != len(names) {
			return false
		}
		leader = ""
		for _, c := range list.Msg.Controllers {
			if c.Answers != "yes" {
				return false
			}
			if c.State == "leads" {
				leader = c.Name
			}
		}
		return leader != ""
	})
	return all, kill, leader
}

// kill -9 of the one that leads, of two: who is left says that nobody leads, by /healthz, by its judgement, and in the list
// of the controllers.
func TestOfTwoControllersTheOneThatIsLeftSaysThatNobodyLeads(t *testing.T) {
	t.Parallel()
	all, kill, leader := processes(t, "c1", "c2")
	left := map[string]string{"c1": "c2", "c2": "c1"}[leader]
	c := all[left]
	c.says()
	kill(leader)
	p := c.says(health.NoLeader)[0]
	if p.What != "no controller leads: 1 of 2 answer, and 2 have to: nothing can be changed, flows go on" || p.Next != "systemctl start scaffold-controld  # on "+leader || p.Where != leader {
		t.Errorf("%v", p)
	}
	began := time.Now()
	list, err := c.admin.ListControllers(t.Context(), connect.NewRequest(&apiv1.ListControllersRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the list took %v", time.Since(began))
	for _, x := range list.Msg.Controllers {
		if x.Name == leader && (x.State != "gone" || x.Answers != "no") || x.Name == left && (x.State != "stands by" || x.Answers != "yes") {
			t.Errorf("%s, of which %s was killed: %v", "controller ls", leader, x)
		}
	}
	if len(list.Msg.Controllers) != 2 || list.Msg.Trouble != p.What || list.Msg.Next != p.Next {
		t.Errorf("the list: %v", list.Msg)
	}
}

// Of three one may die: another one leads, says who is away, and what comes next.
func TestOfThreeControllersOneMayDie(t *testing.T) {
	t.Parallel()
	all, kill, leader := processes(t, "c1", "c2", "c3")
	kill(leader)
	for name, c := range all {
		if name == leader {
			continue
		}
		next := "systemctl start scaffold-controld  # on " + leader + "; if it is gone for good: scaffold controller remove " + leader
		nstest.Wait(t, name+"'s word on who is away", func() error { // on a busy machine the third may be late to answer, too
			if p := c.says(health.ControllerAway)[0]; p.Where != leader || p.Severity != "warning" || p.Next != next {
				return fmt.Errorf("%s says %v, after %s was killed", name, p, leader)
			}
			return nil
		})
		// It asks who leads, for less than a second, and on a busy machine it is not answered each time.
		nstest.Wait(t, name+"'s word on who leads", func() error {
			if h := c.judged(); h.Leader == "" || h.Leader == leader || h.Status.GetLeader() != h.Leader {
				return fmt.Errorf("%s says that %q leads, after %s was killed: %v", name, h.Leader, leader, h.Status)
			}
			return nil
		})
	}
}
