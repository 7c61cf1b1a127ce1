package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// upgradeFrom is the file that names the commit whose daemons this tree's replace, and are replaced by; the variable
// of the name below names another one.
const (
	upgradeFrom    = "testdata/upgrade-from"
	upgradeFromEnv = "SCAFFOLD_UPGRADE_FROM"
	baseVersion    = "base"
)

// base builds the daemons of that commit, once.
var base = sync.OnceValues(func() (string, error) {
	commit := os.Getenv(upgradeFromEnv)
	if commit == "" {
		text, err := os.ReadFile(upgradeFrom)
		if err != nil {
			return "", err
		}
		commit = strings.TrimSpace(string(text))
	}
	dir, err := os.MkdirTemp("", "scaffold-upgrade-")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "scaffold")
	build := exec.Command("sh", "-c", `set -e
		mkdir "$1/tree"
		git -c safe.directory='*' -C "$(git -c safe.directory='*' rev-parse --show-toplevel)" archive "$2" | tar -x -C "$1/tree"
		cd "$1/tree"
		CGO_ENABLED=0 go build -buildvcs=false -ldflags "-X scaffold.dev/scaffold/internal/operate/obs.version=`+baseVersion+`" -o "$3" ./cmd/scaffold
		rm -rf "$1/tree"`, "sh", dir, commit, binary)
	if out, err := build.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("build the daemons of commit %s: %w\n%s", commit, err, out)
	}
	return binary, nil
})

// removeBase removes what base has built.
func removeBase() {
	if !baseAsked {
		return
	}
	if binary, err := base(); err == nil {
		os.RemoveAll(filepath.Dir(binary))
	}
}

var baseAsked bool

// An upgrade is a lab whose daemons are started from a path that leads to one version or another.
type upgrade struct {
	*network
	path     string            // what the lab starts
	versions map[string]string // name of a version: its binary
	addr     netip.Addr
}

// theUpgrade brings up a network of that version, open or with keys.
func theUpgrade(t *testing.T, version, trust string) *upgrade {
	t.Helper()
	nstest.Root(t)
	if os.Getenv("SCAFFOLD_PLANE") != "" {
		t.Skip("upgrades are tried on Linux routers")
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u := &upgrade{path: filepath.Join(t.TempDir(), "scaffold"), versions: map[string]string{"this": own}}
	if version == baseVersion {
		baseAsked = true
		if u.versions[baseVersion], err = base(); err != nil {
			if out, e := exec.Command("git", "-c", "safe.directory=*", "rev-parse", "HEAD").CombinedOutput(); e != nil {
				nstest.Lacks(t, "no repository to build the version of before from: %s", bytes.TrimSpace(out))
			}
			t.Fatal(err)
		}
	}
	u.choose(t, version)
	f, err := file.Load("testdata/upgrade.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.Name, f.Network.Trust = nstest.LabName()+"_up", trust
	l, err := lab.Up(t.Context(), f, lab.Options{Binary: u.path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), f.Name, lab.Options{}); err != nil {
			t.Error(err)
		}
	})
	admin, err := l.Admin()
	if err != nil {
		t.Fatal(err)
	}
	u.network = &network{t, l, admin, map[string]*nstest.NS{}}
	t.Cleanup(u.explain)
	u.addr = u.create("daemons")
	u.loadServers("s1", u.addr)
	u.loadServers("s2", u.addr)
	u.allServe()
	return u
}

// choose makes the lab's path lead to a version; what runs goes on as it is.
func (u *upgrade) choose(t *testing.T, version string) {
	t.Helper()
	next := u.path + ".next"
	if err := os.Symlink(u.versions[version], next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, u.path); err != nil {
		t.Fatal(err)
	}
}

// replace puts a daemon of the version in the place of the one that runs, as a unit does that is restarted: what the
// old one left in the kernel stays.
func (u *upgrade) replace(daemon, version string) {
	u.t.Helper()
	u.choose(u.t, version)
	u.kill(daemon)
	u.do("start " + daemon)
}

// together waits until every daemon is part of the network again.
func (u *upgrade) together() {
	u.t.Helper()
	nstest.Wait(u.t, u.look(), func() error {
		for _, host := range []string{"c1", "s1", "s2"} {
			h, err := u.admin.GetHost(u.t.Context(), connect.NewRequest(&apiv1.GetHostRequest{Name: host}))
			if err != nil || h.Msg.State != "up" {
				return fmt.Errorf("%s, by the controller: %v %v", host, h, err)
			}
			s, err := u.local(host).GetHostStatus(u.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
			if err != nil || s.Msg.State != "joined" {
				return fmt.Errorf("%s: %v %v", host, s, err)
			}
		}
		r, err := u.admin.ListRouters(u.t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(r.Msg.Routers, func(r *apiv1.Router) bool { return r.State != "up" }); i >= 0 || len(r.Msg.Routers) != 2 {
			return fmt.Errorf("routers %v", r.Msg.Routers)
		}
		return nil
	})
}

// try is do with the error.
func (u *upgrade) try(text string) error {
	a, err := file.ParseAction(text)
	if err == nil {
		err = u.lab.Do(u.t.Context(), a)
	}
	return err
}
