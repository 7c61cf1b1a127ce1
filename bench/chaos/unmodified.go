package chaos

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// An errand is an unmodified program that client hosts run again and again against unmodified servers.
type errand struct {
	name, service string
	port          int
	servers       []string
	serve         func(target, dir string) []string                         // the server's command
	run           func(target, id string) []string                          // the client's; each run has an id of its own
	prepare       func(dir, target string) (sum [sha256.Size]byte, e error) // files of a server, may be nil
	check         func(out []byte, sum [sha256.Size]byte) error             // of what a client printed that ended well
	retry         func(err error, out []byte) bool                          // it could not begin
	truncated     func(err error) bool                                      // its answer was cut short as if complete; may be nil
	alone         bool                                                      // the server serves one client at a time
}

const downloadSize = 3 << 20

// errands are those whose programs this machine has.
func errands() (all []errand) {
	for _, e := range []errand{downloads(), transfers(), increments()} {
		if installed(e.serve("", "")[0]) && installed(e.run("", "")[0]) {
			all = append(all, e)
		}
	}
	return all
}

func installed(name string) bool {
	_, err := os.Stat("/usr/sbin/" + name)
	return err == nil || installedInPath(name)
}

func installedInPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// downloads are curl's, of a file of nginx whose sum is known.
func downloads() errand {
	return errand{
		name: "curl", service: "web", port: 80, servers: []string{"s1", "s2"},
		serve: func(_, dir string) []string {
			return []string{"nginx", "-p", dir + "/", "-c", dir + "/nginx.conf", "-e", dir + "/error.log"}
		},
		run: func(target, _ string) []string {
			return []string{"curl", "-sS", "--connect-timeout", "10", "--limit-rate", "1M", "http://" + target + "/big"}
		},
		prepare: func(dir, target string) (sum [sha256.Size]byte, err error) {
			b := make([]byte, downloadSize)
			rand.NewChaCha8([32]byte{1}).Read(b) //nolint:errcheck // never fails
			if err := os.WriteFile(filepath.Join(dir, "big"), b, 0o644); err != nil {
				return sum, err
			}
			return sha256.Sum256(b), os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(fmt.Sprintf(nginxConf, dir, target)), 0o644)
		},
		check: func(out []byte, sum [sha256.Size]byte) error {
			if sha256.Sum256(out) != sum {
				return fmt.Errorf("%d bytes came, and they are not those of the file", len(out))
			}
			return nil
		},
		retry:     func(err error, _ []byte) bool { return exited(err, 7, 28) }, // no connection, none in time
		truncated: func(err error) bool { return exited(err, 18) },              // partial file
	}
}

const nginxConf = `daemon off; worker_processes 1; user root; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 256; }
http { access_log off; client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3;
uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5; server { listen %[2]s; root %[1]s; } }
`

// transfers are iperf3's; its server is alone.
func transfers() errand {
	return errand{
		name: "iperf3", service: "perf", port: 5201, servers: []string{"s3"}, alone: true,
		serve: func(target, _ string) []string { return []string{"iperf3", "-6", "-s", "-B", host(target)} },
		run: func(target, _ string) []string {
			return []string{"iperf3", "-6", "-c", host(target), "-t", "4", "-b", "4M", "--connect-timeout", "10000"}
		},
		check: func(out []byte, _ [sha256.Size]byte) error {
			if !bytes.Contains(out, []byte("receiver")) {
				return fmt.Errorf("no summary: %s", out)
			}
			return nil
		},
		retry: func(_ error, out []byte) bool {
			return bytes.Contains(out, []byte("busy")) || bytes.Contains(out, []byte("unable to connect"))
		},
	}
}

// increments are redis-cli's, one connection for all of them; the numbers must follow each other.
func increments() errand {
	return errand{
		name: "redis-cli", service: "kv", port: 6379, servers: []string{"s2"},
		serve: func(target, dir string) []string {
			return []string{"redis-server", "--bind", host(target), "--port", "6379", "--save", "", "--dir", dir, "--protected-mode", "no"}
		},
		run: func(target, id string) []string {
			return []string{"redis-cli", "-h", host(target), "-r", "50", "-i", "0.1", "INCR", id}
		},
		check: func(out []byte, _ [sha256.Size]byte) error {
			var last, n int
			for line := range strings.Lines(string(out)) {
				if _, err := fmt.Sscan(line, &n); err != nil || last != 0 && n != last+1 {
					return fmt.Errorf("after %d came %q", last, line)
				}
				last = n
			}
			return nil
		},
		retry: func(_ error, out []byte) bool { return bytes.Contains(out, []byte("Could not connect")) },
	}
}

func host(target string) string {
	addr, _, _ := strings.Cut(strings.TrimPrefix(target, "["), "]")
	return addr
}

// exited reports whether a program ended with one of the codes.
func exited(err error, codes ...int) bool {
	var e *exec.ExitError
	return errors.As(err, &e) && slices.Contains(codes, e.ExitCode())
}
