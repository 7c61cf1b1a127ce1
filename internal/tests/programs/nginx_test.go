package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nginxConf serves one directory. It names the host in a header, and writes to its own directory only.
const nginxConf = `
daemon off;
user root;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 512; }
http {
	access_log %[1]s/access.log;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s backlog=511;
		root %[1]s/www;
		add_header X-Host %[3]s always;
	}
}
`

// web is the service that the HTTP clients use: two nginx, each bound in one of the two ways, serve the
// same bytes at /blob and their own name at /.
func web(t *testing.T, blob []byte) *service {
	t.Helper()
	s := newService(t, "web")
	one, two := nginxDir(t, "s1", s.at(80), blob), nginxDir(t, "s2", "[::]:80", blob)
	s.own("s1", one, "nginx", "-c", one+"/nginx.conf", "-e", one+"/error.log")
	s.wild("s2", two, "nginx", "-c", two+"/nginx.conf", "-e", two+"/error.log")
	s.serving("tcp", 80)
	return s
}

// nginxDir makes all that one nginx needs.
func nginxDir(t *testing.T, host, listen string, blob []byte) string {
	t.Helper()
	dir := place(t)
	www := filepath.Join(dir, "www")
	if err := os.Mkdir(www, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "nginx.conf", fmt.Sprintf(nginxConf, dir, listen, host))
	put(t, www, "index.html", "<html><body><h1>Instance</h1><p>served by "+host+"</p></body></html>\n")
	put(t, www, "blob", string(blob))
	return dir
}

// hits counts the lines of the access logs that hold text, by host.
func hits(t *testing.T, s *service, text string) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, srv := range s.servers {
		b, err := os.ReadFile(filepath.Join(srv.dir, "access.log"))
		if err != nil {
			t.Fatal(err)
		}
		n[srv.host] = strings.Count(string(b), text)
	}
	return n
}
