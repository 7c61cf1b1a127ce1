package e2e

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/operate/setup"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// ids are numbers for the user and the groups of an installation, which this machine may not have.
var ids = map[string]int{"root": 0, "scaffold": 61001, "scaffold-admin": 61002}

// An installed machine has the directories of an installation, below one of the test's, and which groups its units give.
type installed struct {
	root  string
	units map[setup.Role]map[string]string
}

// anInstallation does what systemd-tmpfiles and systemd do by the files of the package.
func anInstallation(t *testing.T) installed {
	t.Helper()
	root, err := os.MkdirTemp("", "in") // a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	x := installed{root, map[setup.Role]map[string]string{}}
	files := setup.Packaged()
	for line := range strings.Lines(string(files["/usr/lib/tmpfiles.d/scaffold.conf"])) {
		f := strings.Fields(line)
		if len(f) != 5 || f[0] != "d" {
			continue
		}
		mode, err := strconv.ParseUint(f[2], 8, 12)
		if err != nil {
			t.Fatal(err)
		}
		path := x.at(f[1])
		for _, err := range []error{os.MkdirAll(path, 0o755), os.Chown(path, ids[f[3]], ids[f[4]]), syscall.Chmod(path, uint32(mode))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, r := range setup.Roles {
		x.units[r] = map[string]string{"User": "root", "Group": "root"}
		for line := range strings.Lines(string(files["/lib/systemd/system/"+r.Unit()])) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				x.units[r][key] = value
			}
		}
	}
	return x
}

func (x installed) at(path string) string { return filepath.Join(x.root, path) }

// user is whom systemd makes a daemon: only the groups count that its unit says, not the first one of its user.
func (x installed) user(r setup.Role) nstest.User {
	u := nstest.User{ID: ids[x.units[r]["User"]], Group: ids[x.units[r]["Group"]]}
	for name := range strings.FieldsSeq(x.units[r]["SupplementaryGroups"]) {
		u.Groups = append(u.Groups, uint32(ids[name]))
	}
	return u
}

// controller starts one as its unit does, and waits until it answers.
func (x installed) controller(t *testing.T) {
	t.Helper()
	u, data := x.user(setup.Controller), x.at("/var/lib/scaffold/controld")
	for _, err := range []error{os.Mkdir(data, 0o700), os.Chown(data, u.ID, u.Group)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/proc/self/exe", "controld", "--trust", "open", "--listen", "", "--data", data, "--socket", x.at(setup.Controller.Socket()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.ID), Gid: uint32(u.Group), Groups: u.Groups}}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // it was killed
	})
	for end := time.Now().Add(patience); connects(x.at(setup.Controller.Socket())) != nil; {
		if time.Now().After(end) {
			t.Fatalf("the controller does not answer at %s", x.at(setup.Controller.Socket()))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sockets are made by the other daemons, as root.
func (x installed) sockets(t *testing.T, roles ...setup.Role) {
	t.Helper()
	for _, r := range roles {
		l, err := api.Listen("unix:" + x.at(r.Socket()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
}

func connects(socket string) error {
	c, err := net.Dial("unix", socket)
	if err == nil {
		c.Close()
	}
	return err
}

// TestAMemberOfTheHostsGroupDoesNotRuleTheNetwork: programs of a host are in the group scaffold, by which they speak to
// its daemon. On a machine that is the controller, too, they cannot speak to it, nor read or change what it has; who is
// in scaffold-admin can; and a controller that was broken into does not speak to the host's and the router's daemon.
func TestAMemberOfTheHostsGroupDoesNotRuleTheNetwork(t *testing.T) {
	nstest.Root(t)
	x := anInstallation(t)
	x.controller(t)
	x.sockets(t, setup.Router, setup.Host)
	host, router, controller := x.at(setup.Host.Socket()), x.at(setup.Router.Socket()), x.at(setup.Controller.Socket())
	without := func(u nstest.User) nstest.User { u.ID = nstest.NobodyID; return u } // root without its capabilities, by its groups
	for name, c := range map[string]struct {
		who   nstest.User
		opens []string
	}{
		"a member of scaffold":        {nstest.User{ID: nstest.NobodyID, Group: nstest.NobodyID, Groups: []uint32{uint32(ids["scaffold"])}}, []string{host, router}},
		"a member of scaffold-admin":  {nstest.User{ID: nstest.NobodyID, Group: nstest.NobodyID, Groups: []uint32{uint32(ids["scaffold-admin"])}}, []string{controller}},
		"a member of neither":         {nstest.User{ID: nstest.NobodyID, Group: nstest.NobodyID}, nil},
		"the controller":              {x.user(setup.Controller), []string{controller}},
		"the gateway":                 {without(x.user(setup.Gateway)), []string{host, router}},
		"a host's daemon, by groups":  {without(x.user(setup.Host)), []string{controller}},
		"a router's daemon, the same": {without(x.user(setup.Router)), []string{controller}},
	} {
		opens := map[string]bool{}
		for _, path := range c.opens {
			opens[path] = true
		}
		nstest.As(t, c.who, func() {
			for _, path := range []string{host, router, controller} {
				if err := connects(path); (err == nil) != opens[path] {
					t.Errorf("%s at %s: %v; lets it in: %v", name, path, err, opens[path])
				}
			}
		})
	}
	member := nstest.User{ID: nstest.NobodyID, Group: nstest.NobodyID, Groups: []uint32{uint32(ids["scaffold"])}}
	paths := everything(t, x.root)
	if len(paths.sockets) != 3 || len(paths.dirs) < 6 {
		t.Fatalf("%d sockets and %d directories below %s", len(paths.sockets), len(paths.dirs), x.root)
	}
	paths.secrets = files(t, x.at("/var/lib/scaffold/controld"))
	paths.sockets = nil // they were tried
	nstest.As(t, member, func() {
		for _, trial := range ofFiles(paths) {
			if trial.err == nil {
				t.Errorf("%s: it worked", trial.what)
			}
		}
	})
}

// files are those below a directory.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // gone meanwhile: etcd renames what it begins with
		}
		if err == nil && e.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("files below %s: %d, %v", dir, len(all), err)
	}
	return all
}
