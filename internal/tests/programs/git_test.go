package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a bare one with a history that does not compress away; it returns the last commit.
func repository(t *testing.T, dir string) (commit string) {
	t.Helper()
	work := filepath.Join(dir, "work")
	local(t, "git", "init", "-q", "-b", "main", work)
	for i := range 3 {
		put(t, work, fmt.Sprintf("blob%d", i), string(random(1<<20))+fmt.Sprint(i))
		local(t, "git", "-C", work, "add", ".")
		local(t, "git", "-C", work, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", fmt.Sprint(i))
	}
	local(t, "git", "clone", "-q", "--bare", work, filepath.Join(dir, "git", "repo.git"))
	local(t, "git", "-C", filepath.Join(dir, "git", "repo.git"), "update-server-info")
	return strings.TrimSpace(local(t, "git", "-C", work, "rev-parse", "HEAD"))
}

// cloned is an error of the test where a clone is not that commit, whole.
func cloned(t *testing.T, url, commit string) {
	t.Helper()
	dir := filepath.Join(place(t), "clone")
	client(t, "git", "clone", "-q", url, dir)
	if got := strings.TrimSpace(local(t, "git", "-C", dir, "rev-parse", "HEAD")); got != commit {
		t.Errorf("%s: cloned %s, want %s", url, got, commit)
	}
	local(t, "git", "-C", dir, "fsck", "--strict")
}

func TestGitDaemon(t *testing.T) {
	s := newService(t, "git")
	for i, host := range []string{"s1", "s2"} {
		dir := place(t)
		commit := repository(t, dir)
		argv := []string{"git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--base-path=" + dir + "/git", "--verbose"}
		if i == 0 { // alone, for a push changes one of them
			s.own(host, dir, append(argv, "--listen="+s.addr.String())...)
			s.serving("tcp", 9418)
			cloned(t, "git://"+s.host+"/repo.git", commit)
			work := filepath.Join(dir, "work")
			put(t, work, "more", "more")
			local(t, "git", "-C", work, "add", ".")
			local(t, "git", "-C", work, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "more")
			client(t, "git", "-C", work, "push", "-q", "git://"+s.host+"/repo.git", "main")
			cloned(t, "git://"+s.host+"/repo.git", strings.TrimSpace(local(t, "git", "-C", work, "rev-parse", "HEAD")))
			continue
		}
		s.wild(host, dir, append(argv, "--listen=::")...)
	}
	s.serving("tcp", 9418)
	for range 12 {
		client(t, "git", "ls-remote", "-q", "git://"+s.host+"/repo.git")
	}
	for _, srv := range s.servers {
		if !strings.Contains(srv.proc.Output(), "Request upload-pack") {
			t.Errorf("the daemon on %s was asked for nothing", srv.host)
		}
	}
}

// lighttpdGit serves the smart protocol over HTTP.
const lighttpdGit = `
server.document-root = "%[1]s"
server.bind = "[%[2]s]"
server.port = 80
server.errorlog = "%[1]s/error.log"
server.modules = ("mod_alias", "mod_setenv", "mod_cgi")
alias.url = ("/git" => "%[3]s")
cgi.assign = ("" => "")
setenv.set-environment = ("GIT_PROJECT_ROOT" => "%[1]s/git", "GIT_HTTP_EXPORT_ALL" => "1")
`

func TestGitOverHTTP(t *testing.T) {
	s := newService(t, "githttp")
	dir := place(t)
	commit := repository(t, dir)
	backend := filepath.Join(strings.TrimSpace(local(t, "git", "--exec-path")), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Fatal(err)
	}
	conf := put(t, dir, "lighttpd.conf", fmt.Sprintf(lighttpdGit, dir, s.addr, backend))
	s.own("s1", dir, "lighttpd", "-D", "-f", conf)
	s.serving("tcp", 80)
	cloned(t, s.url("/git/repo.git"), commit)
}
