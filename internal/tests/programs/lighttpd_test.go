package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const lighttpdConf = `
server.document-root = "%[1]s/www"
server.bind = "%[2]s"
server.port = 80
server.pid-file = "%[1]s/lighttpd.pid"
server.errorlog = "%[1]s/error.log"
server.modules = ("mod_accesslog")
accesslog.filename = "%[1]s/access.log"
index-file.names = ("index.html")
`

func (s *service) lighttpd(host, bind string, blob []byte, start func(host, dir string, argv ...string) server) {
	dir := place(s.t)
	www := filepath.Join(dir, "www")
	if err := os.Mkdir(www, 0o755); err != nil {
		s.t.Fatal(err)
	}
	put(s.t, www, "index.html", "served by "+host+"\n")
	put(s.t, www, "blob", string(blob))
	start(host, dir, "lighttpd", "-D", "-f", put(s.t, dir, "lighttpd.conf", fmt.Sprintf(lighttpdConf, dir, bind)))
}

func TestLighttpd(t *testing.T) {
	blob := random(8 << 20)
	s := newService(t, "light")
	s.lighttpd("s1", "["+s.addr.String()+"]", blob, s.own)
	s.lighttpd("s2", "[::]", blob, s.wild)
	s.serving("tcp", 80)
	got := filepath.Join(place(t), "blob")
	client(t, "curl", "-sS", "--fail", "-o", got, s.url("/blob"))
	sameFile(t, got, blob)
	seen := map[string]int{}
	for range 20 {
		page := client(t, "curl", "-sS", "--fail", s.url("/"))
		seen[strings.TrimSpace(strings.TrimPrefix(page, "served by "))]++
	}
	both(t, "pages of lighttpd", seen)
}
