package remote

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestWhomASocketDoesNotLetInHearsWhichGroupItIsFor: also where the socket is in a directory that hides it, as an
// installed controller's. A user who is only in the group of the host's daemon learns that there is another one.
func TestWhomASocketDoesNotLetInHearsWhichGroupItIsFor(t *testing.T) {
	nstest.Root(t)
	g, err := user.LookupGroup("daemon") // one that each system has, in the place of scaffold-admin
	if err != nil {
		t.Skip(err)
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "g")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	hidden, link, plain := filepath.Join(dir, "controld"), filepath.Join(dir, "controld.sock"), filepath.Join(dir, "hostd.sock")
	for _, err := range []error{os.Chmod(dir, 0o755), os.Mkdir(hidden, 0o750), os.Symlink("controld/api.sock", link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(hidden, "api.sock"), plain} {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if err := os.Chmod(path, 0o660); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(hidden, 0, gid); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{link: "daemon", filepath.Join(hidden, "api.sock"): "daemon", plain: ""} {
		var got string
		nstest.Nobody(t, func() { got = groupOf(path) })
		if got != want {
			t.Errorf("%s is for the group %q, want %q", path, got, want)
		}
	}
}
