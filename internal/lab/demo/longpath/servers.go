package longpath

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// files are what is fetched.
type files struct {
	dir string
	sum [sha256.Size]byte // of the large one
}

// tree is how many files rsync copies, and of how many bytes each is.
const (
	treeFiles = 200
	treeBytes = 256 << 10
)

// writeFiles writes a large file, a small one, and a tree of more, none of which can be compressed.
func writeFiles(dir string) (f files, err error) {
	f.dir = dir
	if err := os.MkdirAll(filepath.Join(dir, "tree"), 0o755); err != nil {
		return f, err
	}
	b := make([]byte, large)
	if _, err := rand.NewChaCha8([32]byte{1}).Read(b); err != nil {
		return f, err
	}
	f.sum = sha256.Sum256(b)
	write := func(name string, text []byte) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
	}
	write("large", b)
	write("small", b[:1000])
	for i := range treeFiles {
		write(fmt.Sprintf("tree/%03d", i), b[i*treeBytes:][:treeBytes])
	}
	return f, err
}

// nginx writes its settings, and returns their path.
func (s *show) nginx() string {
	return s.put("nginx.conf", fmt.Sprintf(`daemon off; user root; worker_processes 1; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events {}
http { access_log off; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
	server { listen %[2]d; listen [::]:%[2]d; listen %[3]d; listen [::]:%[3]d; root %[4]s; add_header X-Client $remote_addr; } }
`, s.dir, webPort, plainPort, s.files.dir))
}

// rsync writes its settings, and returns their path.
func (s *show) rsync(port int) string {
	return s.put(fmt.Sprintf("rsyncd-%d.conf", port), fmt.Sprintf("use chroot = no\npid file = %s/rsyncd-%d.pid\n[files]\npath = %s\nread only = yes\n", s.dir, port, s.files.dir))
}

// put writes a file; that it could not is found by who reads it.
func (s *show) put(name, text string) string {
	path := filepath.Join(s.dir, name)
	_ = os.WriteFile(path, []byte(text), 0o644)
	return path
}
