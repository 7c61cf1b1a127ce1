package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const rsyncConf = `
use chroot = no
uid = root
gid = root
address = %[2]s
log file = %[1]s/rsyncd.log
pid file = %[1]s/rsyncd.pid
[files]
path = %[1]s/files
read only = no
`

func TestRsync(t *testing.T) {
	s := newService(t, "rsync")
	dir := place(t)
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	blob := random(16 << 20)
	put(t, files, "down", string(blob))
	s.own("s1", dir, "rsync", "--daemon", "--no-detach", "--config="+put(t, dir, "rsyncd.conf", fmt.Sprintf(rsyncConf, dir, s.addr)))
	s.serving("tcp", 873)
	at := place(t)
	url := "rsync://" + s.host + "/files/"
	client(t, "rsync", "-a", url, at)
	sameFile(t, filepath.Join(at, "down"), blob)
	blob[len(blob)/2]++
	put(t, at, "down", string(blob)) // only what differs goes up
	put(t, at, "up", string(blob))
	client(t, "rsync", "-a", "--checksum", at+"/", url)
	sameFile(t, filepath.Join(files, "down"), blob)
	sameFile(t, filepath.Join(files, "up"), blob)
}
